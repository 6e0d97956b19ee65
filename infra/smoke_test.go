package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/jsii-runtime-go"
)

// smokeOf returns a template's custom resource with its id, and the ECS service that waits for it.
func smokeOf(t *testing.T, made template) (id string, smoke, service resource) {
	t.Helper()
	for id, smoke = range made.of(t, "Custom::Smoke") {
	}
	for _, service = range made.of(t, "AWS::ECS::Service") {
	}
	return id, smoke, service
}

// A worker task is tested with everything it needs before its service runs it, and again after every change.
func TestWorkerTaskIsTestedFirst(t *testing.T) {
	made := synthesize(t, map[string]any{"workerImage": "worker"})
	id, smoke, service := smokeOf(t, made)
	if !slices.Contains(list(service.DependsOn), any(id)) {
		t.Errorf("the service waits for %v, want %s", service.DependsOn, id)
	}
	if at(smoke.Properties, "TaskDefinition", "Ref") == nil ||
		fmt.Sprint(smoke.Properties["TaskDefinition"]) != fmt.Sprint(service.Properties["TaskDefinition"]) {
		t.Errorf("%v is tested, the service has %v", smoke.Properties["TaskDefinition"], service.Properties["TaskDefinition"])
	}
	network := at(service.Properties, "NetworkConfiguration", "AwsvpcConfiguration")
	if fmt.Sprint(smoke.Properties["Subnets"]) != fmt.Sprint(at(network, "Subnets")) ||
		fmt.Sprint(smoke.Properties["SecurityGroups"]) != fmt.Sprint(at(network, "SecurityGroups")) ||
		smoke.Properties["PublicAddress"] != "true" {
		t.Errorf("it is tested in %v, and runs in %v", smoke.Properties, network)
	}
	if smoke.Properties["Container"] != "worker" || smoke.Properties["LogGroup"] != "/cutroom/dev/worker" ||
		fmt.Sprint(smoke.Properties["ServiceTimeout"]) != "1200" {
		t.Errorf("the resource is %v", smoke.Properties)
	}
	waits := fmt.Sprint(smoke.DependsOn)
	for _, needed := range []string{"WorkerTaskRoleDefaultPolicy", "WorkerTaskExecutionRoleDefaultPolicy", "Blobs",
		"DefaultRoute", "NetworkDynamoDB", "NetworkS3"} {
		if !strings.Contains(waits, needed) {
			t.Errorf("it waits for %[2]s, want %[1]s", needed, waits)
		}
	}
}

// The images of GPU tasks are tested without a GPU and without weights.
func TestGPUImagesAreTestedWithoutGPU(t *testing.T) {
	made := synthesizeGPU(t, map[string]any{"gpu.weights": "s3://models/cutroom/"})
	id, smoke, service := smokeOf(t, made)
	if !slices.Contains(list(service.DependsOn), any(id)) {
		t.Errorf("the service waits for %v, want %s", service.DependsOn, id)
	}
	if smoke.Properties["PublicAddress"] != "false" || smoke.Properties["LogGroup"] != "/cutroom/dev/gpu-worker" {
		t.Errorf("the resource is %v", smoke.Properties)
	}
	tried := made.taskOf(t, "cutroom-dev-gpu-smoke")
	if fmt.Sprint(tried["RequiresCompatibilities"]) != "[FARGATE]" ||
		at(tried, "RuntimePlatform", "CpuArchitecture") != "X86_64" {
		t.Errorf("the task is %v", tried)
	}
	served := made.taskOf(t, "cutroom-dev-gpu-worker")
	for _, c := range list(tried["ContainerDefinitions"]) {
		container := c.(map[string]any)
		for _, other := range list(served["ContainerDefinitions"]) {
			if at(other, "Name") == container["Name"] && fmt.Sprint(at(other, "Image")) != fmt.Sprint(container["Image"]) {
				t.Errorf("%v is tested instead of %v", container["Image"], at(other, "Image"))
			}
		}
		switch container["Name"] {
		case "engine":
			if container["ResourceRequirements"] != nil ||
				variable(container, "CUTROOM_ENGINE_DEVICE") != "cpu" ||
				variable(container, "CUTROOM_ENGINE_WEIGHTS_SOURCE") != nil {
				t.Errorf("the engine is %v", container)
			}
		case "worker":
			if fmt.Sprint(container["Command"]) != "[-smoke]" ||
				variable(container, "CUTROOM_ENGINE") != "http://127.0.0.1:8090" {
				t.Errorf("the worker is %v", container)
			}
		}
	}
	if name := made.only(t, "AWS::Lambda::Function")["FunctionName"]; name != "cutroom-dev-gpu-smoke" {
		t.Errorf("the function is %v", name)
	}
	// The engine's image has only x86-64 programs. The function is built like all others.
	if on := fmt.Sprint(made.only(t, "AWS::Lambda::Function")["Architectures"]); on != "[arm64]" {
		t.Errorf("the function runs on %s", on)
	}
}

// The test is omitted if it is off or nothing needs testing.
func TestSmokeTestIsOptional(t *testing.T) {
	for _, made := range []template{
		synthesize(t, map[string]any{"workerImage": "worker", "smoke": "off"}),
		synthesize(t, map[string]any{"worker": "none", "watch": "off"}),
		synthesize(t, map[string]any{"gpu": "true", "gpu.max": "3", "watch": "off"}),
		synthesizeGPU(t, map[string]any{"smoke": "off"}),
	} {
		made.ResourceCountIs(jsii.String("Custom::Smoke"), jsii.Number(0))
		text, err := json.Marshal(made.ToJSON())
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "ecs:RunTask") || strings.Contains(string(text), "-smoke") {
			t.Error("a part of it exists")
		}
	}
}

func (m template) taskOf(t *testing.T, family string) map[string]any {
	t.Helper()
	for _, task := range m.of(t, "AWS::ECS::TaskDefinition") {
		if task.Properties["Family"] == family {
			return task.Properties
		}
	}
	t.Fatalf("no task definition %s", family)
	return nil
}
