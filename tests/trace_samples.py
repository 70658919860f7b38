"""A small valid trace in every format that can be imported, and a throughput table."""

from __future__ import annotations

import json

from accounts import batch, ended, lsf, started

GAVEL_OLD = (
    "ResNet-50 (batch size 64)\tpython3 main.py %s \t--n\t1\t2931\t100.000000\t2\n"
    "LM (batch size 40) \tcd x && python main.py\t--steps\t1\t122646\t40.000000\t1\n"
    "A3C\tpython3 rl.py\t--max\t0\t77\t50\t0\n"
)
GAVEL_NEW = (
    'ResNet-50 (batch size 64)\tpython3 "main.py\timage\t--num_minibatches\t1\t2931\t2\t1\t-1.000000\t0\n'
    "LM (batch size 40)\tpython3 lm.py\tlm\t--steps\t1\t5000\t1\t2.5\t1.5\t60\n"
)
PHILLY_JSON = json.dumps(
    [
        {
            "status": "Pass",
            "vc": "ee9e8c",
            "jobid": "application_1506638472019_14199",
            "attempts": [
                {
                    "start_time": "2017-10-07 01:12:09",
                    "end_time": "2017-10-07 01:13:23",
                    "detail": [{"ip": "m47", "gpus": ["gpu0", "gpu1"]}, {"ip": "m48", "gpus": ["gpu0"]}],
                },
                {
                    "start_time": "2017-10-07 01:13:30",
                    "end_time": "2017-10-07 02:13:30",
                    "detail": [{"ip": "m412", "gpus": ["gpu0", "gpu1", "gpu2"]}],
                },
                {"start_time": "2017-10-08 00:00:00", "end_time": None, "detail": []},
            ],
            "submitted_time": "2017-10-07 01:11:39",
            "user": "ce2f4c",
        },
        {
            "status": "Killed",
            "vc": "6214e9",
            "jobid": "b",
            "attempts": [
                {
                    "start_time": "2017-10-07 00:00:10",
                    "end_time": "2017-10-07 00:00:20",
                    "detail": [{"ip": "m1", "gpus": ["gpu3"]}],
                }
            ],
            "submitted_time": "2017-10-07 00:00:00",
            "user": "u",
        },
        {
            "status": "Failed",
            "vc": "x",
            "jobid": "c",
            "attempts": [],
            "submitted_time": "2017-10-07 00:00:00",
        },
        {
            "status": "Killed",
            "vc": "x",
            "jobid": "d",
            "attempts": [{"start_time": "None", "end_time": "", "detail": [{"ip": "m1", "gpus": ["gpu3"]}]}],
            "submitted_time": "2017-10-07 00:00:00",
        },
    ],
    indent=1,
)
SAMPLES = {
    "pbs": "\n".join([started("1.srv", 0, 0), ended("1.srv", 0, 0, 60), ended("2.srv", 0, 60, 90)]),
    "lsf": "\n".join([lsf(1, 0, 0, 60), lsf(2, 0, 60, 90)]),
    "kubernetes": json.dumps(
        {"apiVersion": "v1", "items": [batch("a", 0, 0, 60, 4), batch("b", 0, 60, 90, 4)]}, indent=1
    ),
    "gavel": GAVEL_NEW,
    "philly": "timestamp,duration,num_gpus,gpu_time,cluster\n"
    "2017-10-09 07:01:55,66.0,1,66.0,11cb48\n2017-10-09 06:13:03,2951.0,2,5902.0,6214e9\n",
    "philly_json": PHILLY_JSON,
    "itp": "job_id,submission_time,duration,num_gpu\na,1932025,2429,64\nb,2000581,1532,1\n",
    "openb": "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,"
    "scheduled_time\np0,12000,16384,1,1000,V100M16|V100M32,LS,Running,5,1005,10\np1,1,1,1,460,,BE,Pending,6,7,\n"
    "p2,4000,1,8,1000,T4,,Failed,7,107,7\n",
    "tiresias": "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n"
    "0,1,0,606,vgg19,164,30\n1,8,30,133,no_such_model,147,23\n",
    "muri": "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,"
    "resource_time_0,resource_time_1,resource_time_2,priority\n0,1,0,100,dqn,128,49000,46122000,490,446,8,0,1\n",
    "shockwave": "ResNet-18 (batch size 32)\tpython3 main.py\timages\t--n\t1\t7332\t2\taccordion\t1\t-1.0\t100\t50\n"
    "LM (batch size 40)\tpython3 lm.py\tlm\t--steps\t1\t5000\t1\tstatic\t2.5\t1.5\t40\t7\n"
    "LM (batch size 40)\tpython3 lm.py\tlm\t--steps\t1\t5000\t0\tgns\t1\t-1\t40\t8\n",
    "synergy": "0,alexnet,.123,3349,4\n1,gnmt,.286,26435,1\n",
    "synergy_csv": "job,model,arrival_s,iterations,gpus\na,alexnet,409,3447,1\nb,gnmt,951,34181,1\n",
    "helios": "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
    "1425511,uXBbc,vcJkd,1,1,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-10 04:55:09,36848,"
    "0\n"
    "1425512,uVMrF,vchbv,4,16,1,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:27,2020-06-09 18:45:36,249,0\n"
    "1425513,uzqls,vchbv,0,1,1,CANCELLED,2020-06-09 18:41:28,2020-06-09 18:41:28,2020-06-17 14:15:21,675233,"
    "0\n",
    "acme": "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,"
    "gpu_time\n"
    "5778432,u5907,1,8,128,Other,FAILED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,"
    "2023-03-01 00:20:51+08:00,117,32,936.0\n"
    "5778469,u5907,1,16,128,Other,COMPLETED,2023-02-28 16:23:58+00:00,2023-03-01 00:24:11+08:00,"
    "2023-03-01 01:09:04+08:00,2693,13,21544.0\n"
    "5778470,,1,8,1,Other,CANCELLED,2023-03-01 00:30:00+08:00,,,,,\n",
    "sacct": "JobID|JobName|Submit|Start|End|State|AllocTRES|NodeList\n1|a|2026-03-02T08:00:00|2026-03-02T08:10:00|"
    "2026-03-02T09:00:00|COMPLETED|cpu=1,gres/gpu:v100=4|g1\n"
    "2|b|2026-03-02T08:01:00|2026-03-02T08:10:00|2026-03-02T09:00:00|COMPLETED|cpu=1,gres/gpu:v100=4|g1\n",
    "swf": "1 0 10 100 4 -1 -1 4 200 -1 1 1 1 -1 0 -1 -1 -1\n2 5 10 100 4 -1 -1 4 200 -1 1 1 1 -1 0 -1 -1 -1\n",
    "pai2020": "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type\n"
    "j1,ps,2,Terminated,100,400,600,29.3,,\nj1,worker,3,Terminated,110,390,600,29.3,50,T4\n"
    "j2,tensorflow,1,Failed,50,80,600,29.3,100,MISC\nj3,worker,1,Running,60,,600,29.3,25,V100\n"
    "j4,ps,1,Terminated,1,2,600,29.3,0,\n",
}

PAI_JOBS = "j1,i1,ann,Terminated,40,400\nj2,i2,bob,Failed,49,80.0\n"
"""Made-up rows in the form of ``pai_job_table.csv``, which has no header."""

TABLE = json.dumps({"v100": {"('ResNet-50 (batch size 64)', 2)": {"null": 7.5}, "('A3C', 1)": {"null": 3.0}}})
NODES = "sn,cpu_milli,memory_mib,gpu,model\na,1000,1000,2,T4\nb,96000,786432,8,V100M32\n"
