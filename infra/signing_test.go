package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Workers that sign results read their identity from a secret that only they may read and write. Workers with
// engine servers sign by default. Workers with the preview engine sign only if the option is set.
func TestWorkersSignResults(t *testing.T) {
	previews := map[string]any{"workerImage": "worker"}
	for name, c := range map[string]struct {
		made         template
		family, role string
		signs        bool
		// mode is CUTROOM_C2PA. stays is the secret's deletion policy.
		mode  any
		stays string
	}{
		"GPUs":      {synthesizeGPU(t, nil), "cutroom-dev-gpu-worker", "TaskRole", true, nil, "Delete"},
		"GPUs, off": {synthesizeGPU(t, map[string]any{"c2pa": "off"}), "cutroom-dev-gpu-worker", "TaskRole", false, "off", ""},
		"previews":  {synthesize(t, previews), "cutroom-dev-worker", "WorkerTaskRole", false, nil, ""},
		"previews, on": {
			synthesize(t, map[string]any{"stage": "prod", "workerImage": "worker", "watch": "off", "c2pa": "on"}),
			"cutroom-prod-worker", "WorkerTaskRole", true, "on", "Retain",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var worker map[string]any
			for _, container := range list(c.made.taskOf(t, c.family)["ContainerDefinitions"]) {
				if at(container, "Name") == "worker" {
					worker, _ = container.(map[string]any)
				}
			}
			if mode := variable(worker, "CUTROOM_C2PA"); mode != c.mode {
				t.Errorf("CUTROOM_C2PA is %v, want %v", mode, c.mode)
			}
			secret := variable(worker, "CUTROOM_C2PA_SECRET_ARN")
			var may, want []string
			for _, line := range c.made.permissions(t) {
				if strings.HasSuffix(line, " Signer") {
					may = append(may, line)
				}
			}
			if c.signs {
				want = []string{c.role + " secretsmanager:GetSecretValue Signer", c.role + " secretsmanager:PutSecretValue Signer"}
			}
			slices.Sort(may)
			if !slices.Equal(may, want) || (secret != nil) != c.signs {
				t.Errorf("the secret is %v, and may be used by %v, want %v", secret, may, want)
			}
			made := 0
			for id, r := range c.made.resources {
				if r.Type != "AWS::SecretsManager::Secret" || withoutHash(id) != "Signer" {
					continue
				}
				made++
				// A fixed name would block the next deployment if the secret remained.
				if fmt.Sprint(at(secret, "Ref")) != id || r.Properties["SecretString"] != "unset" || r.Properties["Name"] != nil ||
					r.Properties["GenerateSecretString"] != nil || r.DeletionPolicy != c.stays {
					t.Errorf("%s is %+v, the worker's is %v", id, r, secret)
				}
			}
			if (made == 1) != c.signs {
				t.Errorf("there are %d secrets", made)
			}
		})
	}
}
