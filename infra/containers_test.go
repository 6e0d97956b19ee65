package main

import (
	"slices"
	"testing"
)

// Containers can write only to their scratch folder. ECS replaces a container that does not respond. Fargate allows two
// minutes for starting and stopping.
func TestContainersAreReadOnlyAndWatched(t *testing.T) {
	checked := 0
	for id, task := range containersOf(t).of(t, "AWS::ECS::TaskDefinition") {
		for _, container := range list(at(task.Properties, "ContainerDefinitions")) {
			checked++
			if at(container, "ReadonlyRootFilesystem") != true {
				t.Errorf("the image of %s can be written", id)
			}
			if !slices.Contains(list(at(container, "HealthCheck", "Command")), any("-health")) {
				t.Errorf("ECS does not check the health of %s", id)
			}
			for _, limit := range []string{"StartTimeout", "StopTimeout"} {
				if seconds, ok := at(container, limit).(float64); ok && (seconds < 2 || seconds > 120) {
					t.Errorf("%s has the %s %v", id, limit, seconds)
				}
			}
			mounts := list(at(container, "MountPoints"))
			if len(mounts) != 1 || at(mounts[0], "ContainerPath") != scratchFolder || at(mounts[0], "ReadOnly") != false {
				t.Errorf("%s has %v", id, mounts)
			}
		}
	}
	if checked != 3 {
		t.Errorf("%d containers were checked, want the worker, the media service and the realtime service", checked)
	}
}
