package deployment

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/iamtest"
)

// workerRole is the role of the worker's tasks. The local AWS runs no containers, so the deployed
// stack has no worker tasks.
const workerRole = "WorkerTaskRole"

// guard checks the programs' AWS calls against the deployed template's policies.
func (d *deployed) guard(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(d.template)
	if err != nil {
		t.Fatal(err)
	}
	rights, err := iamtest.ReadTemplate(text, awstest.Here)
	if err != nil {
		t.Fatal(err)
	}
	for _, policy := range awstest.DeployedRights(t).Roles[workerRole] {
		here := strings.ReplaceAll(string(policy), "cutroom-dev", "cutroom-"+stage)
		rights.Roles[workerRole] = append(rights.Roles[workerRole], json.RawMessage(here))
	}
	account, err := iamtest.NewAccount(awstest.Here, rights)
	if err != nil {
		t.Fatal(err)
	}
	d.calls.Guard(t, awstest.Guard{
		Account: account, Names: map[string]string{
			"state machine of a token": "cutroom-" + stage + "-jobs",
			// The local AWS adds no suffix to secret names.
			"cutroom-" + stage + "-service-key": "cutroom-" + stage + "-service-key-AbCdEf",
		},
		Role: func(accessKey string) string {
			if accessKey == workerRole {
				return accessKey
			}
			return account.RoleOf(accessKey)
		},
	})
}
