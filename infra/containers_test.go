package main

import "testing"

// Containers can write only to their scratch folder.
func TestContainersAreReadOnly(t *testing.T) {
	made := synthesize(t, map[string]any{"watch": "off", "workerImage": "worker"})
	checked := 0
	for id, task := range made.of(t, "AWS::ECS::TaskDefinition") {
		for _, container := range list(at(task.Properties, "ContainerDefinitions")) {
			checked++
			if at(container, "ReadonlyRootFilesystem") != true {
				t.Errorf("the image of %s can be written", id)
			}
			mounts := list(at(container, "MountPoints"))
			if len(mounts) != 1 || at(mounts[0], "ContainerPath") != scratchFolder || at(mounts[0], "ReadOnly") != false {
				t.Errorf("%s has %v", id, mounts)
			}
		}
	}
	if checked == 0 {
		t.Error("no container")
	}
}
