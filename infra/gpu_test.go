package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"cutroom/shared/testkit/thorough"
)

const engineImageOfTests = "123456789012.dkr.ecr.eu-central-1.amazonaws.com/cutroom/engine:7"

// describeGPU describes a stage's GPU stack. Its images already exist, unless the context says otherwise.
func describeGPU(t *testing.T, context map[string]any) *gpuStack {
	t.Helper()
	gpus, _ := describeBoth(t, context)
	return gpus
}

// describeBoth returns the GPU stack and a stand-in for the service's stack.
func describeBoth(t *testing.T, context map[string]any) (*gpuStack, awscdk.Stack) {
	t.Helper()
	values := map[string]any{"gpu": "true", "functions": fakeFunctions(t),
		"workerImage": "123456789012.dkr.ecr.eu-central-1.amazonaws.com/cutroom/worker:7"}
	for key, value := range context {
		values[key] = value
	}
	o, err := readOptions(values)
	if err != nil {
		t.Fatal(err)
	}
	o.Root = ".."
	app := awscdk.NewApp(
		&awscdk.AppProps{Outdir: jsii.String(t.TempDir()), AnalyticsReporting: jsii.Bool(false), PostCliContext: features(t)})
	// Only the scope of the service's stack is needed. It has a resource because CDK warns about empty stacks.
	service := awscdk.NewStack(app, jsii.String("Cutroom-"+o.Stage), nil)
	awscdk.NewCfnWaitConditionHandle(service, jsii.String("Nothing"), nil)
	return newGPUStack(app, &stack{Stack: service, options: o}), service
}

func synthesizeGPU(t *testing.T, context map[string]any) template {
	t.Helper()
	return once(t, fmt.Sprint("GPUs ", context), func() awscdk.Stack { return describeGPU(t, context).Stack })
}

func (m template) only(t *testing.T, kind string) map[string]any {
	t.Helper()
	found := m.of(t, kind)
	if len(found) != 1 {
		t.Fatalf("the template has %d %s", len(found), kind)
	}
	for _, r := range found {
		return r.Properties
	}
	return nil
}

// The functions that woke the preview workers now wake the GPU workers.
func TestGPUsReplacePreviewWorkers(t *testing.T) {
	made := synthesize(t, map[string]any{"gpu": "true", "gpu.max": "3", "watch": "off"})
	made.ResourceCountIs(jsii.String("AWS::ECS::Service"), jsii.Number(0))
	made.ResourceCountIs(jsii.String("AWS::EC2::VPC"), jsii.Number(0))
	for _, f := range made.of(t, "AWS::Lambda::Function") {
		variables := at(f.Properties, "Environment", "Variables")
		switch f.Properties["FunctionName"] {
		case "cutroom-dev-wake":
			if at(variables, "CUTROOM_CLUSTER") != "cutroom-dev-gpu" ||
				at(variables, "CUTROOM_WORKER_SERVICE") != "cutroom-dev-gpu-worker" {
				t.Errorf("wake wakes %v", variables)
			}
		case "cutroom-dev-jobs":
			if at(variables, "CUTROOM_WORKERS") != "3" {
				t.Errorf("jobs counts on %v workers, want 3", at(variables, "CUTROOM_WORKERS"))
			}
		}
	}
	for id, policy := range made.of(t, "AWS::IAM::Policy") {
		if text := fmt.Sprint(policy.Properties); strings.Contains(text, "ecs:UpdateService") &&
			!strings.Contains(text, ":service/cutroom-dev-gpu/cutroom-dev-gpu-worker") {
			t.Errorf("%s may scale another service: %s", id, text)
		}
	}
	gpus := synthesizeGPU(t, nil)
	service := gpus.only(t, "AWS::ECS::Service")
	if service["ServiceName"] != "cutroom-dev-gpu-worker" ||
		gpus.only(t, "AWS::ECS::Cluster")["ClusterName"] != "cutroom-dev-gpu" {
		t.Errorf("the service is %v", service)
	}
	// An export that another stack imports cannot be changed, so there must be none.
	text, err := json.Marshal(gpus.ToJSON())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "Fn::ImportValue") {
		t.Error("the stack imports exports of another stack")
	}
}

// While the GPUs are being prepared, the service's stack does not change, so the preview workers remain. A later
// deployment removes them, after the GPUs have started.
func TestGPUsStartBeforePreviewWorkersStop(t *testing.T) {
	without := synthesize(t, contextOfPreviews)
	prepared := synthesize(t, map[string]any{"workerImage": "worker", "gpu": "prepare", "gpu.max": "3"})
	if !reflect.DeepEqual(withoutCode(without), withoutCode(prepared)) {
		t.Error("preparing GPUs changes the service's stack")
	}
	if service := prepared.only(t, "AWS::ECS::Service"); service["ServiceName"] != "cutroom-dev-worker" {
		t.Errorf("the preview workers are %v", service["ServiceName"])
	}
	for phase, first := range map[string]string{"prepare": "Cutroom-dev", "true": "Cutroom-dev-gpu"} {
		gpus, service := describeBoth(t, map[string]any{"gpu": phase})
		if gpus.workerService() != "cutroom-dev-gpu-worker" || *gpus.where.cluster.ClusterName() == "" {
			t.Errorf("%s: the service is %s", phase, gpus.workerService())
		}
		var order []string
		for from, to := range map[awscdk.Stack]awscdk.Stack{service: gpus.Stack, gpus.Stack: service} {
			for _, needed := range *from.Dependencies() {
				if *needed.Node().Id() == *to.Node().Id() {
					order = append(order, *to.Node().Id())
				}
			}
		}
		if len(order) != 1 || order[0] != first {
			t.Errorf("%s: the order begins with %v, want %s", phase, order, first)
		}
	}
}

// withoutCode returns a template's resources without the parts that change with each synthesis.
func withoutCode(made template) map[string]resource {
	resources := map[string]resource{}
	for id, r := range made.resources {
		if r.Type == "AWS::Lambda::Function" {
			properties := maps.Clone(r.Properties)
			delete(properties, "Code")
			r.Properties = properties
		}
		resources[id] = r
	}
	return resources
}

// The service depends on the cluster's capacity, so that the instances outlive the service.
func TestServiceDependsOnItsCapacity(t *testing.T) {
	made := synthesizeGPU(t, nil)
	for id := range made.of(t, "AWS::ECS::ClusterCapacityProviderAssociations") {
		for _, service := range made.of(t, "AWS::ECS::Service") {
			if !slices.Contains(list(service.DependsOn), any(id)) {
				t.Errorf("the service depends on %v, and not on %s", service.DependsOn, id)
			}
		}
	}
}

// Each task runs a worker and an engine server, and has its own GPU and disk.
func TestGPUTaskHasWorkerAndEngine(t *testing.T) {
	described := describeGPU(t, map[string]any{"gpu.weights": "s3://models/cutroom/"})
	made := parse(t, described.Stack)
	checkEngineSource(t, described)
	task := made.taskOf(t, "cutroom-dev-gpu-worker")
	if task["NetworkMode"] != "awsvpc" || fmt.Sprint(task["RequiresCompatibilities"]) != "[EC2]" {
		t.Errorf("the task is %v in the network %v", task["RequiresCompatibilities"], task["NetworkMode"])
	}
	containers := map[string]map[string]any{}
	for _, c := range list(task["ContainerDefinitions"]) {
		container := c.(map[string]any)
		containers[container["Name"].(string)] = container
		if container["Name"] == "weights" {
			continue
		}
		if container["StopTimeout"] != 120.0 || container["Essential"] != true ||
			at(container, "HealthCheck", "Command") == nil {
			t.Errorf("%v: stop timeout %v, essential %v, health check %v", container["Name"], container["StopTimeout"],
				container["Essential"], container["HealthCheck"])
		}
		if container["PortMappings"] != nil || container["Privileged"] == true {
			t.Errorf("%v is exposed", container["Name"])
		}
	}
	for _, volume := range made.of(t, "AWS::ECS::TaskDefinition") {
		for _, v := range list(volume.Properties["Volumes"]) {
			if at(v, "Name") == "instance-weights" && at(v, "DockerVolumeConfiguration", "DriverOpts", "device") != hostWeights {
				t.Errorf("weights are kept at %v", at(v, "DockerVolumeConfiguration"))
			}
		}
	}
	checkWeights(t, containers["weights"])
	checkEngine(t, containers["engine"])
	checkGPUWorker(t, containers["worker"])
}

func variable(container map[string]any, name string) any {
	for _, v := range list(container["Environment"]) {
		if at(v, "Name") == name {
			return at(v, "Value")
		}
	}
	return nil
}

func mounts(container map[string]any) string {
	var found []string
	for _, m := range list(container["MountPoints"]) {
		found = append(found, fmt.Sprint(at(m, "SourceVolume"), at(m, "ContainerPath")))
	}
	return strings.Join(found, " ")
}

// The weights are copied before the engine server starts. A copy that fails stops the task.
func checkWeights(t *testing.T, weights map[string]any) {
	t.Helper()
	want := "[flock /weights/.lock] [rclone sync --transfers 8 :s3:models/cutroom/ /weights/models]"
	if got := fmt.Sprint(weights["EntryPoint"], " ", weights["Command"]); got != want {
		t.Errorf("weights are copied by %s, want %s", got, want)
	}
	if weights["Essential"] != false || variable(weights, "RCLONE_S3_ENV_AUTH") != "true" ||
		mounts(weights) != "instance-weights/weights" {
		t.Errorf("the container is %v", weights)
	}
}

func checkEngine(t *testing.T, engine map[string]any) {
	t.Helper()
	if got := fmt.Sprint(engine["ResourceRequirements"]); got != "[map[Type:GPU Value:1]]" {
		t.Errorf("the engine has %s", got)
	}
	for name, want := range map[string]string{
		"CUTROOM_ENGINE_ADDR": "127.0.0.1:8090", "CUTROOM_ENGINE_SCRATCH": "/scratch",
		"CUTROOM_ENGINE_WEIGHTS_SOURCE": "/weights/models", "CUTROOM_FAMILY": "gen",
	} {
		if got := variable(engine, name); got != want {
			t.Errorf("the engine has %s=%v, want %s", name, got, want)
		}
	}
	if got := fmt.Sprint(engine["DependsOn"]); got != "[map[Condition:SUCCESS ContainerName:weights]]" {
		t.Errorf("the engine waits for %s", got)
	}
	if got := mounts(engine); got != "scratch/scratch instance-weights/weights" {
		t.Errorf("the engine has %s", got)
	}
}

func checkGPUWorker(t *testing.T, worker map[string]any) {
	t.Helper()
	if worker["ResourceRequirements"] != nil {
		t.Error("the worker has its own GPU")
	}
	if got := fmt.Sprint(worker["DependsOn"]); got != "[map[Condition:HEALTHY ContainerName:engine]]" {
		t.Errorf("the worker waits for %s", got)
	}
	for name, want := range map[string]string{"CUTROOM_ENGINE": "http://127.0.0.1:8090", "CUTROOM_SCRATCH": "/scratch",
		"CUTROOM_JOBS_TABLE": "cutroom-dev-jobs", "CUTROOM_USAGE_TABLE": "cutroom-dev-usage"} {
		if got := variable(worker, name); got != want {
			t.Errorf("the worker has %s=%v, want %s", name, got, want)
		}
	}
	for _, name := range []string{"CUTROOM_BUCKET", "CUTROOM_VIDEO_QUEUE", "CUTROOM_IMAGE_QUEUE", "AWS_REGION"} {
		if variable(worker, name) == nil {
			t.Errorf("the worker has no %s", name)
		}
	}
	if worker["ReadonlyRootFilesystem"] != true {
		t.Error("the worker's image can be written")
	}
	if got := mounts(worker); got != "scratch/scratch" {
		t.Errorf("the worker has %s", got)
	}
}

// checkEngineSource checks that the engine's image is built from exactly the files that its Dockerfile copies.
func checkEngineSource(t *testing.T, s *gpuStack) {
	t.Helper()
	var files []string
	images, err := filepath.Glob(filepath.Join(*awscdk.Stage_Of(s.Stack).Outdir(), "asset.*", "gpu"))
	for i, folder := range images {
		images[i] = filepath.Dir(folder)
	}
	if err != nil || len(images) != 1 {
		t.Fatalf("the images are %v, %v", images, err)
	}
	err = filepath.WalkDir(images[0], func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !strings.Contains(path, "cutroom_engine") {
			files = append(files, strings.TrimPrefix(path, images[0]))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(files,
		" "); got != "/.dockerignore /Dockerfile /gpu/Dockerfile /gpu/models.yaml /gpu/pyproject.toml /gpu/requirements.txt" {
		t.Errorf("the engine's image is built from %s", got)
	}
	source, err := filepath.Glob("../gpu/cutroom_engine/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range source {
		_, err := os.Stat(filepath.Join(images[0], strings.TrimPrefix(path, "../")))
		if is := err == nil; is != (filepath.Ext(path) == ".py") {
			t.Errorf("%s is part of the engine's image: %t", path, is)
		}
	}
}

// Instances have no public address and accept no connections, their disks are encrypted, and tasks
// cannot reach the instance metadata.
func TestInstancesAcceptNoConnections(t *testing.T) {
	made := synthesizeGPU(t, map[string]any{"gpu.disk": "700"})
	data := at(made.only(t, "AWS::EC2::LaunchTemplate"), "LaunchTemplateData")
	if at(data, "MetadataOptions", "HttpTokens") != "required" ||
		at(data, "MetadataOptions", "HttpPutResponseHopLimit") != 1.0 {
		t.Errorf("metadata: %v", at(data, "MetadataOptions"))
	}
	disk := at(list(at(data, "BlockDeviceMappings"))[0], "Ebs")
	if at(disk, "Encrypted") != true || at(disk, "VolumeSize") != 700.0 || at(disk, "VolumeType") != "gp3" {
		t.Errorf("the disk is %v", disk)
	}
	if fmt.Sprint(at(list(at(data, "NetworkInterfaces"))[0], "AssociatePublicIpAddress")) != "false" {
		t.Errorf("instances have public addresses: %v", at(data, "NetworkInterfaces"))
	}
	if script := fmt.Sprint(at(data, "UserData")); !strings.Contains(script, "ECS_AWSVPC_BLOCK_IMDS=true") ||
		strings.Contains(script, "SPOT") {
		t.Errorf("instances are prepared by %s", script)
	}
	if script := fmt.Sprint(at(data, "UserData")); !strings.Contains(script, "NVMe_Instance_Storage") ||
		!strings.Contains(script, `mount -o noatime "$store" `+hostWeights) {
		t.Errorf("the instances' own disks are not mounted by %s", script)
	}
	for id, group := range made.of(t, "AWS::EC2::SecurityGroup") {
		if group.Properties["SecurityGroupIngress"] != nil {
			t.Errorf("%s allows incoming %v", id, group.Properties["SecurityGroupIngress"])
		}
		for _, rule := range list(group.Properties["SecurityGroupEgress"]) {
			if at(rule, "FromPort") != 443.0 || at(rule, "ToPort") != 443.0 {
				t.Errorf("%s allows outgoing %v", id, rule)
			}
		}
	}
	made.ResourceCountIs(jsii.String("AWS::EC2::SecurityGroupIngress"), jsii.Number(0))
	for id, subnet := range made.of(t, "AWS::EC2::Subnet") {
		if subnet.Properties["MapPublicIpOnLaunch"] == true {
			t.Errorf("%s gives public addresses", id)
		}
	}
	private := map[string]bool{}
	for id := range made.of(t, "AWS::EC2::Subnet") {
		private[id] = strings.Contains(id, "private")
	}
	where := append(list(made.only(t, "AWS::AutoScaling::AutoScalingGroup")["VPCZoneIdentifier"]),
		list(at(made.only(t, "AWS::ECS::Service"), "NetworkConfiguration", "AwsvpcConfiguration", "Subnets"))...)
	for _, subnet := range where {
		if id, _ := at(subnet, "Ref").(string); !private[id] {
			t.Errorf("%v has resources", subnet)
		}
	}
	if at(made.only(t, "AWS::ECS::Service"), "NetworkConfiguration", "AwsvpcConfiguration",
		"AssignPublicIp") != "DISABLED" {
		t.Error("tasks have public addresses")
	}
	var endpoints []string
	for _, endpoint := range made.of(t, "AWS::EC2::VPCEndpoint") {
		name := made.nameOf(endpoint.Properties["ServiceName"])
		endpoints = append(endpoints, name[strings.LastIndex(name, ".")+1:]+" "+
			fmt.Sprint(endpoint.Properties["VpcEndpointType"]))
	}
	slices.Sort(endpoints)
	if got := strings.Join(endpoints, ", "); got != "dynamodb Gateway, s3 Gateway" {
		t.Errorf("the endpoints are %s", got)
	}
}

// Initially there are no tasks or instances. Only the function scale changes their number, so that
// no task with a job is stopped.
func TestGPUsScaleFromZero(t *testing.T) {
	made := synthesizeGPU(t, map[string]any{"gpu.max": "5"})
	made.ResourceCountIs(jsii.String("AWS::ApplicationAutoScaling::ScalableTarget"), jsii.Number(0))
	made.ResourceCountIs(jsii.String("AWS::CloudWatch::Alarm"), jsii.Number(0))
	group := made.only(t, "AWS::AutoScaling::AutoScalingGroup")
	if group["MinSize"] != "0" || group["MaxSize"] != "5" || group["DesiredCapacity"] != nil ||
		group["NewInstancesProtectedFromScaleIn"] != true {
		t.Errorf("from %v to %v instances, %v at first, protected: %v", group["MinSize"], group["MaxSize"],
			group["DesiredCapacity"], group["NewInstancesProtectedFromScaleIn"])
	}
	provider := at(made.only(t, "AWS::ECS::CapacityProvider"), "AutoScalingGroupProvider")
	if at(provider, "ManagedScaling", "Status") != "ENABLED" ||
		at(provider, "ManagedTerminationProtection") != "ENABLED" || at(provider, "ManagedDraining") != "ENABLED" {
		t.Errorf("the capacity is %v", provider)
	}
	service := made.only(t, "AWS::ECS::Service")
	if service["DesiredCount"] != nil || service["LaunchType"] != nil ||
		len(list(service["CapacityProviderStrategy"])) != 1 {
		t.Errorf("the service has %v tasks, the launch type %v and the strategy %v", service["DesiredCount"],
			service["LaunchType"], service["CapacityProviderStrategy"])
	}
	// ECS requires zone rebalancing to be off if no additional task may run.
	deployment := service["DeploymentConfiguration"]
	if at(deployment, "MinimumHealthyPercent") != 0.0 || at(deployment, "MaximumPercent") != 100.0 ||
		service["AvailabilityZoneRebalancing"] != "DISABLED" {
		t.Errorf("a deployment has %v, and zones are balanced: %v", deployment, service["AvailabilityZoneRebalancing"])
	}
}

func TestInstanceTypesAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		context            map[string]any
		types              string
		base, onDemandRest float64
		script             string
	}{
		"by default": {nil, "g6e.2xlarge g6e.4xlarge", 0, 100, ""},
		"spot": {
			map[string]any{"gpu.instances": "p4d.24xlarge,g6e.4xlarge", "gpu.spot": "true", "gpu.onDemand": "1"},
			"p4d.24xlarge g6e.4xlarge", 1, 0, "ECS_ENABLE_SPOT_INSTANCE_DRAINING=true",
		},
	} {
		t.Run(name, func(t *testing.T) {
			made := synthesizeGPU(t, c.context)
			policy := at(made.only(t, "AWS::AutoScaling::AutoScalingGroup"), "MixedInstancesPolicy")
			var types []string
			for _, override := range list(at(policy, "LaunchTemplate", "Overrides")) {
				types = append(types, fmt.Sprint(at(override, "InstanceType")))
			}
			if got := strings.Join(types, " "); got != c.types {
				t.Errorf("the types are %s, want %s", got, c.types)
			}
			distribution := at(policy, "InstancesDistribution")
			if at(distribution, "OnDemandBaseCapacity") != c.base ||
				at(distribution, "OnDemandPercentageAboveBaseCapacity") != c.onDemandRest {
				t.Errorf("the distribution is %v", distribution)
			}
			if script := fmt.Sprint(made.only(t, "AWS::EC2::LaunchTemplate")); !strings.Contains(script, c.script) {
				t.Errorf("instances are prepared without %s: %s", c.script, script)
			}
			// This permission lets ECS stop tasks in time when a spot instance is reclaimed.
			const drain = "InstanceRole ecs:UpdateContainerInstancesState " +
				"arn:Partition:ecs:Region:AccountId:container-instance/cutroom-dev-gpu/*"
			if may := slices.Contains(made.permissions(t), drain); may != (c.context != nil) {
				t.Errorf("instances can report that they are reclaimed: %t", may)
			}
		})
	}
	t.Run("warm pool", func(t *testing.T) {
		made := synthesizeGPU(t, map[string]any{"gpu.instances": "g6e.2xlarge", "gpu.warmPool": "1"})
		if made.only(t, "AWS::AutoScaling::AutoScalingGroup")["MixedInstancesPolicy"] != nil {
			t.Error("a warm pool allows no mixed instances")
		}
		made.HasResourceProperties(jsii.String("AWS::AutoScaling::WarmPool"),
			map[string]any{"MinSize": 1, "PoolState": "Stopped"})
		if script := fmt.Sprint(made.only(t, "AWS::EC2::LaunchTemplate")); !strings.Contains(script,
			"ECS_WARM_POOLS_CHECK=true") {
			t.Error("ECS treats standby instances as running")
		}
	})
}

func TestEnginesMayReadTheirWeights(t *testing.T) {
	for name, c := range map[string]struct {
		context map[string]any
		want    []string
	}{
		"in the stage's bucket": {nil, []string{"s3:GetObject arn:Partition:s3:::cutroom-dev-AccountId-Region/weights/*", "s3:ListBucket arn:Partition:s3:::cutroom-dev-AccountId-Region"}},
		"in another bucket":     {map[string]any{"gpu.weights": "s3://models/a/b"}, []string{"s3:GetObject arn:Partition:s3:::models/a/b/*", "s3:ListBucket arn:Partition:s3:::models"}},
		"in their own bucket":   {map[string]any{"gpu.weights": "s3://models"}, []string{"s3:GetObject arn:Partition:s3:::models/*", "s3:ListBucket arn:Partition:s3:::models"}},
		"in the image":          {map[string]any{"gpu.engineImage": engineImageOfTests}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			made := synthesizeGPU(t, c.context)
			var got []string
			for _, line := range made.permissions(t) {
				_, line, _ = strings.Cut(line, " ") // without the role
				// Skip the prefixes that the worker needs for jobs' inputs and thumbnails, because the worker shares
				// the engine's role.
				if strings.HasPrefix(line, "s3:") && !slices.ContainsFunc([]string{"/jobs/", "/files/", "/thumbnails/"},
					func(of string) bool { return strings.Contains(line, of) }) {
					got = append(got, line)
				}
			}
			if c.want == nil {
				// With this permission, the worker gets "not found" instead of "access denied" for
				// a missing blob of a job.
				c.want = []string{"s3:ListBucket arn:Partition:s3:::cutroom-dev-AccountId-Region"}
			} else if name != "in the stage's bucket" {
				c.want = append(c.want, "s3:ListBucket arn:Partition:s3:::cutroom-dev-AccountId-Region")
			}
			slices.Sort(got)
			got = slices.Compact(got)
			slices.Sort(c.want)
			if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("the roles may\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

func TestGPUStackFollowsAwsSolutions(t *testing.T) {
	thorough.Only(t)
	folder := t.TempDir()
	for name, context := range map[string]map[string]any{
		"spot": {"gpu.spot": "true", "gpu.onDemand": "1", "tracing": "on"},
		"warm": {
			"stage": "prod", "gpu.instances": "g6e.2xlarge", "gpu.warmPool": "1", "gpu.min": "1",
			"gpu.weights": "s3://models/cutroom", "gpu.engineImage": engineImageOfTests, "gpu.vpc": "vpc-0a1b2c3d",
			"gpu.subnets": "subnet-0a1b2c3d,subnet-1a1b2c3d", "gpu.zones": "eu-central-1a,eu-central-1b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			followsRules(t, describeGPU(t, context).Stack, filepath.Join(folder, name+".json"))
		})
	}
	lint(t, folder)
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
