"""Plants the fault that $PARTITA_PLANT describes, {"op": "tanh", "kind": "value", "factor": 1.05}, when it is imported:
`partita --python-import plant_by_environment`."""
import json
import os

import plant

if os.environ.get("PARTITA_PLANT"):
    plant.plant(**json.loads(os.environ["PARTITA_PLANT"]))
