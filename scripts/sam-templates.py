"""sam-templates.py TEMPLATE: writes a copy of a template for each of its APIs, such as media.template.json.

SAM serves all APIs of a template at one address, where their paths would collide.
"""

import json
import pathlib
import sys

source = pathlib.Path(sys.argv[1])
template = json.loads(source.read_text())
resources = template["Resources"]
apis = {name for name, resource in resources.items() if resource["Type"] == "AWS::ApiGateway::RestApi"}
for api in apis:
    others = apis - {api}
    kept = {
        name: resource
        for name, resource in resources.items()
        if name not in others and resource.get("Properties", {}).get("RestApiId", {}).get("Ref") not in others
    }
    copy = source.with_name(resources[api]["Properties"]["Name"].rpartition("-")[2] + ".template.json")
    copy.write_text(json.dumps({"Resources": kept}, indent=1))
