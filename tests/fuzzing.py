"""Valid inputs of every kind are changed at random: reading them must succeed, or fail with one line that says why.

``python tests/fuzzing.py 100000`` tries so many inputs and shows the first input of each fault.
"""

from __future__ import annotations

import json
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import FrameType
from typing import Any

from trace_samples import GAVEL_OLD, NODES, SAMPLES, TABLE

import schedgap as sg
from schedgap.certificates import RefusedError
from schedgap.harness.check import judge_asked
from schedgap.harness.engine.sealed import SEAL, digests, sealed
from schedgap.harness.studies import sweep
from schedgap.harness.studies.compare import decisions
from schedgap.harness.studies.compare.run import compare_here
from schedgap.harness.studies.folders import check, reopen
from schedgap.harness.studies.simulate.run import SimulationOptions as Simulated
from schedgap.harness.studies.simulate.run import resolve, rules_for
from schedgap.heuristics.simulator import InvalidAssignmentError, ProgramError, messages, servers, simulate, workload
from schedgap.heuristics.simulator.program import Program, Scheduler
from schedgap.instances import load
from schedgap.instances.canonical import to_json
from schedgap.instances.catalogue import MAX_REFERENCE
from schedgap.instances.errors import NotApplicableError, UsageError
from schedgap.instances.importers import Options, import_trace
from schedgap.instances.registry import PAPERS
from schedgap.instances.schema import Instance

HANG_S = 30
"""Most seconds that reading an input may take."""

ROOT = Path(__file__).resolve().parent.parent
TINY = "gen/20jobs?jobs=4"

NASTY = (
    *("0", "-1", "1e-9", "1e12", "1e308", "-1e308", "1e400", "5e-324", "nan", "inf", "NaN", "Infinity", "null", "true"),
    *("[]", "{}", '""', "[[]]", "9" * 30, str(2**31), str(2**63), "0.5", "3", "é\u2028", "\x00", "\x1b[2J", "\t", ","),
    *(
        '"',
        "'",
        "\r",
        "\n",
        "=",
        "?",
        "&",
        "../..",
        "/etc/passwd",
        "[" * 2000,
        "a.b." * 200,
        "<script>",
        "%00",
        "\ud800",
    ),
)


# ------------------------------------------------------------------------------------------------------------ changes


def mutant(rng: random.Random, content: bytes) -> bytes:
    """Return an input's content with one to four changes of its bytes, words, lines, or values."""
    for _ in range(rng.randint(1, 4)):
        content = rng.choice(CHANGES)(rng, content)
    return content


def _bytes(rng: random.Random, content: bytes) -> bytes:
    """Flip, drop, double or insert some bytes."""
    a, b = sorted(rng.randint(0, len(content)) for _ in range(2))
    b = min(b, a + rng.choice((1, 4, 64)))
    flipped = bytes(byte ^ 1 << rng.randrange(8) for byte in content[a:b])
    middle = rng.choice((b"", content[a:b] * 2, rng.randbytes(2), flipped))
    return content[:a] + middle + content[b:]


def _word(rng: random.Random, content: bytes) -> bytes:
    """Replace a number or word by a nasty one, or by another word of the same content."""
    words = list(re.finditer(rb'"[^"]*"|[\w.+-]+', content))
    if not words:
        return content + rng.choice(NASTY).encode(errors="surrogatepass")
    place = rng.choice(words)
    new = rng.choice((rng.choice(NASTY).encode(errors="surrogatepass"), rng.choice(words)[0]))
    return content[: place.start()] + new + content[place.end() :]


def _lines(rng: random.Random, content: bytes) -> bytes:
    """Drop, double or swap lines, or cut the content off."""
    lines = content.splitlines(keepends=True)
    if len(lines) < 2:
        return content[: rng.randint(0, len(content))]
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    how = rng.randrange(3)
    if how == 0:
        lines[i], lines[j] = lines[j], lines[i]
    else:
        lines[i : i + 1] = [lines[i]] * (2 * how - 2)
    return b"".join(lines)


def _value(rng: random.Random, content: bytes) -> bytes:
    """Change a value of a JSON text, or drop its key."""
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        return _word(rng, content)
    places = list(_places(data))
    if not places:
        return content
    holder, key = rng.choice(places)
    if rng.random() < 0.2:
        del holder[key]
    elif isinstance(holder, list) and rng.random() < 0.2:
        holder.insert(key, holder[key])
    else:
        other, name = rng.choice(places)
        with suppress(ValueError):
            holder[key] = rng.choice((json.loads(rng.choice(NASTY[:20])), other[name] if other is not holder else None))
    with suppress(ValueError, RecursionError):
        return json.dumps(data).encode()
    return content


def _places(data: Any) -> Iterator[tuple[Any, Any]]:
    pairs = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in list(pairs):
        yield data, key
        yield from _places(value)


CHANGES = (_bytes, _word, _word, _word, _lines, _value, _value)


# -------------------------------------------------------------------------------------------------------------- kinds


@dataclass(frozen=True)
class Kind:
    """One kind of input: valid contents to start from, and the function that reads a changed one from a file."""

    suffix: str
    seeds: tuple[bytes, ...]
    read: Callable[[Path], object]


def _instance(path: Path) -> None:
    _looked_at(load(str(path)))


def _looked_at(instance: Instance) -> None:
    """Do with an instance what every command does before methods run."""
    instance._repr_html_()
    workload(instance), servers(instance)
    for paper in PAPERS:
        with suppress(NotApplicableError):
            paper.describe(paper.view(instance))
    with suppress(UsageError):
        rules_for(instance, Simulated())


def _trace(format: str, path: Path) -> None:
    _looked_at(import_trace(format, path, Options()))


def _table(path: Path) -> None:
    trace = path.with_name("trace")
    trace.write_text(GAVEL_OLD)
    _looked_at(import_trace("gavel", trace, Options(throughputs=path)))


def _nodes(path: Path) -> None:
    trace = path.with_name("trace")
    trace.write_text(SAMPLES["openb"])
    _looked_at(import_trace("openb", trace, Options(nodes=path)))


def _reference(path: Path) -> None:
    """Read a line in each role that it can have: a reference to an instance, a policy, a pattern of methods."""
    text = path.read_text(errors="replace")
    with suppress(UsageError):
        resolve([text])
    _looked_at(load(text))


@cache
def _tiny() -> Instance:
    return load(TINY)


def _decision(problem: str, path: Path) -> None:
    view = PAPERS.get(problem.partition(".")[0]).view(_tiny())
    with suppress(RefusedError):
        judge_asked(view, decisions.read(path, view, problem), problem, ())


class _DoneError(Exception):
    """Raised when the program has no more answers: all that it gave were accepted."""


class _Told(Scheduler):
    """A scheduler that gives prepared answers in place of a program's."""

    def __init__(self, *answers: bytes) -> None:
        self.program = Program("exec:./told", "", "", "")
        self._messages, self._greeted, self._answer_s = messages, False, messages.ANSWER_S
        self.answers = list(answers)

    def _exchange(self, rest: bytes, when: str) -> bytes:
        if not self.answers:
            raise _DoneError
        return self.answers.pop(0)

    def _how_it_ended(self) -> str:
        return "the program ended"


HELLO = b'{"type":"hello","version":1}\n'


def _protocol(path: Path) -> None:
    """Read a line as a program's answer to ``hello``, and as its answer to the first state."""
    content, instance = path.read_bytes(), _tiny()
    for answers in ((content,), (HELLO, content)):
        with suppress(ProgramError, InvalidAssignmentError, _DoneError):
            simulate(workload(instance), servers(instance), _Told(*answers), **vars(_rules()))


@cache
def _rules() -> Any:
    return rules_for(_tiny(), Simulated())


def _assignments() -> Iterator[bytes]:
    """Yield valid answers to the first state: one in which no job runs, and some in which a job does."""
    first = _first_round()
    for run in ([], [(0, 0, 4)], [(0, 1, 4)], [(0, 0, 2), (0, 1, 2)]):
        entries = [{"job": job, "server": server, "gpus": gpus} for job, server, gpus in run]
        yield json.dumps({"type": "assignment", "round": first, "run": entries}).encode() + b"\n"


@cache
def _first_round() -> int:
    with suppress(ProgramError):
        simulate(workload(_tiny()), servers(_tiny()), _Told(HELLO, b""), **vars(_rules()))
    return int(min(job.submit_s for job in _tiny().jobs) // _rules().round_s) + 1


def _results(folder: Path, name: str, path: Path) -> None:
    """Read a results folder in which one file is replaced.

    The journal and ``run.json`` get right digests where possible, as a forger would do.
    """
    content = path.read_bytes()
    copy = path.with_name("run")
    shutil.copytree(folder, copy)
    try:
        if name in ("journal.jsonl", "run.json") and len(content) % 2:
            with suppress(ValueError, TypeError, AttributeError, RecursionError):
                lines = content.splitlines() if name == "journal.jsonl" else [content]
                told = [sealed({k: v for k, v in json.loads(line).items() if k != SEAL}) for line in lines]
                content = b"".join(json.dumps(line).encode() + b"\n" for line in told)
        elif name.startswith("schedules/"):
            _sealed_again(copy, name, content)
        (copy / name).write_bytes(content)
        with suppress(UsageError):
            check(copy)
        found = reopen(copy)
        for row in found.rows:
            row.as_dict()
        list(getattr(found, "decisions", {}).values())
    finally:
        shutil.rmtree(copy)


def _sealed_again(folder: Path, name: str, content: bytes) -> None:
    lines = [json.loads(line) for line in (folder / "journal.jsonl").read_bytes().splitlines()]
    for line in lines:
        line["files"] |= {file: digests({file: content})[file] for file in line["files"] if file == name}
        line.pop(SEAL)
    (folder / "journal.jsonl").write_text("".join(json.dumps(sealed(line)) + "\n" for line in lines))


def kinds(folder: Path) -> dict[str, Kind]:
    """Return the kinds of inputs by name; some need files in `folder`."""
    found = {
        "instance.json": Kind(".json", tuple(to_json(load(ref)).encode() for ref in INSTANCES), _instance),
        "instance.toml": Kind(".toml", tuple(_files("instances/paper/*.toml")), _instance),
        "spec.toml": Kind(".toml", tuple(_smaller(_files("instances/gen/*.toml"))), _instance),
        "reference": Kind("", REFERENCES, _reference),
        "sweep": Kind(".toml", tuple(_files("sweeps/*.toml")), lambda path: sweep.read(path).references),
        "throughputs": Kind(".json", (TABLE.encode(),), _table),
        "nodes": Kind(".csv", (NODES.encode(),), _nodes),
        "protocol": Kind("", (HELLO, b'{"type":"hello","version":1,"answer_s":5}\n', *_assignments()), _protocol),
    }
    for format, text in SAMPLES.items():
        found[f"trace.{format}"] = Kind("", (text.encode(),), partial(_trace, format))
    (folder / "decisions").mkdir()
    for row in (compared := compare_here(_tiny(), METHODS)).rows:
        for one in decisions.FORMS.keys() & {row.paper}:
            view = PAPERS.get(one).view(_tiny())
            for suffix, text in decisions._contents(view, compared.decisions[row.name], row.problem).items():
                name = f"decision.{row.problem}.{suffix}"
                found[name] = Kind(f".{suffix}", (text.encode(),), partial(_decision, row.problem))
    runs = (
        sg.compare("paper/oef-eq1", ["oef.cooperative", "oef.gavel"], jobs=1, bound=False, results=folder),
        sg.simulate("paper/hadar-fig1", ["srtf"], jobs=1, results=folder),
        sg.audit(claims=["oef.slip.*"], effort=0.1, jobs=1, results=folder),
    )
    for run in runs:
        assert run.folder is not None
        for path in run.folder.rglob("*"):
            name = path.relative_to(run.folder).as_posix()
            if path.name in ("run.json", "journal.jsonl") or name.startswith(("schedules/", "instances/")):
                read = partial(_results, run.folder, name)
                found[f"results.{run.folder.name[17:]}/{name}"] = Kind("", (path.read_bytes(),), read)
    return found


INSTANCES = ("paper/oef-eq1", "paper/hadar-fig1", "paper/synergy-example", "paper/walkthrough", TINY)
METHODS = ("hadar.srtf", "hadar.hadare", "admission.online", "oef.gavel", "zhou.*.amaxweight", "zhou.*.fifo")
REFERENCES = (b"gen/20jobs?load=1.2&seed=7", b"paper/hadar-fig1?slot_s=2", b"hadar.tiresias?types=fastest&stay=false")


def _files(pattern: str) -> Iterator[bytes]:
    yield from (path.read_bytes() for path in sorted(ROOT.glob(pattern)))


def _smaller(specs: Iterator[bytes]) -> Iterator[bytes]:
    """Yield generator specs with fewer jobs, because a thousand jobs take a second."""
    for text in specs:
        yield re.sub(rb"(?m)^(jobs|tenants|servers) = \d\d\d+", rb"\1 = 20", text)


# ------------------------------------------------------------------------------------------------------------- trials


def tried(kind: Kind, content: bytes, folder: Path) -> str | None:
    """Read an input; return what is wrong, ``None`` if it is read or refused properly.

    The text begins with the place where an error was raised.
    """
    path = folder / f"fuzzed{kind.suffix}"
    path.write_bytes(content)
    signal.signal(signal.SIGALRM, _stuck)
    signal.alarm(HANG_S)
    try:
        kind.read(path)
    except UsageError as error:
        text = str(error)
        if not text.isprintable() or len(text) > 2 * MAX_REFERENCE:
            return f"a message of more than a line: {text[:300]!r}"
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} in {Path(last.filename).name}:{last.lineno}: {str(error)[:200]!r}"
    finally:
        signal.alarm(0)
    return None


def _stuck(number: int, frame: FrameType | None) -> None:
    raise TimeoutError("a hang")


def faults(number: int, seed: int, folder: Path) -> Iterator[str]:
    """Try a number of changed inputs, equally many of each kind; yield what is wrong, with the input."""
    found = kinds(folder)
    names = sorted(found)
    for i in range(number):
        name, rng = names[i % len(names)], random.Random(f"{seed} {i}")
        content = mutant(rng, rng.choice(found[name].seeds))
        if told := tried(found[name], content, folder):
            yield f"{name}: {told} {content[:2000]!r}"


def main(number: int, seed: int) -> None:
    """Try changed inputs; print the first input of each fault, and how often each fault occurred."""
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    with tempfile.TemporaryDirectory() as folder:
        seen = Counter[str]()
        for told in faults(number, seed, Path(folder)):
            place = ":".join(told.split(":")[:3])
            seen[place] += 1
            if seen[place] == 1:
                print(told, flush=True)
    print(number, "inputs,", dict(seen) or "no fault")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
