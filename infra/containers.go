package main

import (
	"cmp"
	"regexp"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsec2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsecr"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsecrassets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsecs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"
)

const (
	whyPlainVariables = "The variables are names and addresses. Secrets are read from Secrets Manager by their names."
	// whyAnyLogin is the justification for the wildcard in the permissions that CDK adds for images.
	whyAnyLogin = "ECR's login is for the entire account. CDK names every other resource."
)

type containers struct {
	vpc     awsec2.IVpc
	cluster awsecs.Cluster
}

func (s *stack) newContainers() *containers {
	if s.cluster == nil {
		vpc := s.newNetwork()
		cluster := awsecs.NewCluster(s.Stack, jsii.String("Cluster"), &awsecs.ClusterProps{
			ClusterName: jsii.String(s.prefix()), Vpc: vpc,
		})
		suppress(cluster, "AwsSolutions-ECS4", "Container Insights is billed by the metric. The alarms show whether jobs "+
			"are served, by the age and depth of the queues.")
		s.cluster = &containers{vpc, cluster}
	}
	return s.cluster
}

type container struct {
	name string
	// program is the name of the program's folder below cmd.
	program string
	// image is an existing image. If it is empty, the image is built from this repository.
	image string
	// cpu is in units of 1/1024 vCPU, memory in MiB, and disk in GiB.
	cpu, memory, disk int
	environment       []string
	may               []permission
	// port is the container's port, or 0.
	port int
	// live opens the live video port to the internet.
	live bool
	// grace is the maximum time that the container may take to stop, in seconds.
	grace int
}

func (s *stack) newTask(c container) awsecs.FargateTaskDefinition {
	architecture := awsecs.CpuArchitecture_X86_64()
	if s.Arm64 {
		architecture = awsecs.CpuArchitecture_ARM64()
	}
	role := awsiam.NewRole(s.Stack, jsii.String(title(c.name)+"TaskRole"), &awsiam.RoleProps{
		AssumedBy:   awsiam.NewServicePrincipal(jsii.String("ecs-tasks.amazonaws.com"), nil),
		Description: jsii.String("What the " + c.name + " of Cutroom may do"),
	})
	allow(role, c.may...)
	task := awsecs.NewFargateTaskDefinition(s.Stack, jsii.String(title(c.name)+"Task"), &awsecs.FargateTaskDefinitionProps{
		Family: jsii.String(s.name(c.name)), Cpu: jsii.Number(c.cpu), MemoryLimitMiB: jsii.Number(c.memory),
		EphemeralStorageGiB: jsii.Number(c.disk), TaskRole: role,
		RuntimePlatform: &awsecs.RuntimePlatform{CpuArchitecture: architecture,
			OperatingSystemFamily: awsecs.OperatingSystemFamily_LINUX()},
	})
	options := &awsecs.ContainerDefinitionOptions{
		Image:       s.imageOf(c),
		Environment: s.variables(containerFiles, c.environment),
		StopTimeout: awscdk.Duration_Seconds(jsii.Number(c.grace)),
		// ECS ignores the image's HEALTHCHECK. It replaces unhealthy tasks, for example a worker that is stuck.
		HealthCheck: &awsecs.HealthCheck{
			Command:  jsii.Strings("CMD", "/usr/local/bin/program", "-health"),
			Interval: awscdk.Duration_Seconds(jsii.Number(15)), Timeout: awscdk.Duration_Seconds(jsii.Number(5)),
			StartPeriod: awscdk.Duration_Seconds(jsii.Number(startTime + addressTime)), Retries: jsii.Number(3),
		},
		// The root file system is read-only. A container writes only to a volume on the task's own disk, which is
		// deleted with the task. The image declares the volume's folder, so that the image's user owns it.
		ReadonlyRootFilesystem: jsii.Bool(true),
		Logging: awsecs.LogDriver_AwsLogs(&awsecs.AwsLogDriverProps{
			StreamPrefix: jsii.String(c.name), LogGroup: s.newLogGroup(title(c.name)+"Logs", s.logGroup(c.name)),
			Mode: awsecs.AwsLogDriverMode_NON_BLOCKING,
		}),
	}
	if c.port > 0 {
		options.PortMappings = &[]*awsecs.PortMapping{{ContainerPort: jsii.Number(c.port)}}
	}
	if c.live {
		for _, protocol := range []awsecs.Protocol{awsecs.Protocol_UDP, awsecs.Protocol_TCP} {
			*options.PortMappings = append(*options.PortMappings,
				&awsecs.PortMapping{ContainerPort: jsii.Number(livePort), Protocol: protocol})
		}
	}
	task.AddVolume(&awsecs.Volume{Name: jsii.String("scratch")})
	task.AddContainer(jsii.String(c.name), options).AddMountPoints(mountOf("scratch", scratchFolder))
	suppress(task, "AwsSolutions-ECS2", whyPlainVariables)
	suppress(task, "AwsSolutions-IAM5", whyAnyLogin, "Resource::*")
	return task
}

func mountOf(volume, folder string) *awsecs.MountPoint {
	return &awsecs.MountPoint{
		SourceVolume: jsii.String(volume), ContainerPath: jsii.String(folder), ReadOnly: jsii.Bool(false),
	}
}

// imageOf returns a container's image. The deployment builds it, so synthesis needs no Docker.
func (s *stack) imageOf(c container) awsecs.ContainerImage {
	if found := ecrImage.FindStringSubmatch(c.image); found != nil {
		// A repository reference lets CDK add the permission to pull the image.
		repository := awsecr.Repository_FromRepositoryAttributes(s.Stack, jsii.String(title(c.name)+"Repository"),
			&awsecr.RepositoryAttributes{
				RepositoryName: jsii.String(found[3]),
				RepositoryArn: jsii.String("arn:" + *s.Partition() + ":ecr:" + found[2] + ":" + found[1] + ":repository/" +
					found[3]),
			})
		return awsecs.ContainerImage_FromEcrRepository(repository, jsii.String(cmp.Or(found[4], found[5], "latest")))
	}
	if c.image != "" {
		return awsecs.ContainerImage_FromRegistry(jsii.String(c.image), nil)
	}
	platform, architecture := awsecrassets.Platform_LINUX_AMD64(), "amd64"
	if s.Arm64 {
		platform, architecture = awsecrassets.Platform_LINUX_ARM64(), "arm64"
	}
	// Set TARGETARCH for Docker's older builder. BuildKit sets it itself.
	arguments := map[string]*string{"PROGRAM": jsii.String(c.program), "TARGETARCH": jsii.String(architecture)}
	if s.Catalog != "" {
		arguments["CATALOG"] = jsii.String(s.Catalog)
	}
	if s.Tiers != "" {
		arguments["TIERS"] = jsii.String(s.Tiers)
	}
	return awsecs.ContainerImage_FromAsset(jsii.String(s.Root), &awsecs.AssetImageProps{
		File: jsii.String("Dockerfile"), BuildArgs: &arguments, Platform: platform,
		Exclude: jsii.Strings(".git", ".tools", ".cutroom", ".local-aws", "bin", "cdk.out", "node_modules", "test-output",
			"testdata", "docs", "events", "infra", "**/*_test.go", "**/testdata"),
	})
}

// ecrImage matches the name of an image in ECR: account, region, repository, and tag or digest.
var ecrImage = regexp.MustCompile(
	`^([0-9]{12})\.dkr\.ecr\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?/([a-z0-9._/-]+?)(?::([A-Za-z0-9_.-]+)|@(sha256:[0-9a-f]{64}))?$`)

// newService runs a container. It accepts no connections until its security group gets rules.
func (s *stack) newService(c container, props *awsecs.FargateServiceProps) awsecs.FargateService {
	where := s.newContainers()
	group := awsec2.NewSecurityGroup(s.Stack, jsii.String(title(c.name)+"SecurityGroup"), &awsec2.SecurityGroupProps{
		Vpc: where.vpc, Description: jsii.String("The " + c.name + " of Cutroom"), AllowAllOutbound: jsii.Bool(true),
	})
	if c.live {
		openLive(group, c.port)
	}
	props.Cluster, props.ServiceName = where.cluster, jsii.String(s.name(c.name))
	props.TaskDefinition = s.newTask(c)
	props.AssignPublicIp = jsii.Bool(!s.Private)
	props.SecurityGroups = &[]awsec2.ISecurityGroup{group}
	props.CircuitBreaker = &awsecs.DeploymentCircuitBreaker{Rollback: jsii.Bool(true)}
	props.PropagateTags = awsecs.PropagatedTagSource_SERVICE
	return awsecs.NewFargateService(s.Stack, jsii.String(title(c.name)+"Service"), props)
}

func (s *stack) logGroup(container string) string { return "/cutroom/" + s.Stage + "/" + container }
