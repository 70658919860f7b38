"""Check certificates of bounds without running any code of the models: ``check_certificate.py RUN/certificates/*``.

The rules are those of ``harness verify``, in the folder ``certificates/``, which imports only numpy.
"""

import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from certificates import main

if __name__ == "__main__":
    if hasattr(signal, "SIGPIPE"):  # end quietly if the reader of the output has gone (… | head)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    main(sys.argv[1:])
