package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsautoscaling"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsec2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsecs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"
)

const (
	// diskThroughput is in MiB/s. A starting task reads images and weights from the disk, and gp3's
	// default of 125 would be a bottleneck.
	diskThroughput = 500
	// instanceWarmup is the time, in seconds, after which a new instance counts toward the group's metrics.
	instanceWarmup = 300
	// hostWeights is the folder on an instance that contains the weights.
	hostWeights = "/mnt/weights"
)

// newGPUCapacity creates the group of instances. ECS starts an instance for each task that it
// cannot place, at most one per allowed task, and terminates only instances without a task.
func (s *gpuStack) newGPUCapacity() awsecs.AsgCapacityProvider {
	props := &awsautoscaling.AutoScalingGroupProps{
		AutoScalingGroupName: jsii.String(s.name("gpu")), Vpc: s.where.vpc, VpcSubnets: privateSubnets(),
		MinCapacity: jsii.Number(0), MaxCapacity: jsii.Number(s.GPU.Max),
		NewInstancesProtectedFromScaleIn: jsii.Bool(true),
	}
	role := awsiam.NewRole(s.Stack, jsii.String("InstanceRole"), &awsiam.RoleProps{
		AssumedBy:   awsiam.NewServicePrincipal(jsii.String("ec2.amazonaws.com"), nil),
		Description: jsii.String("What the instances with GPUs of Cutroom may do"),
	})
	if s.GPU.Spot {
		allow(role, s.drainSpot())
	}
	template := s.newLaunchTemplate(role)
	if s.GPU.WarmPool > 0 {
		props.LaunchTemplate = template // warm pools do not support mixed instances
	} else {
		props.MixedInstancesPolicy = s.mixedInstances(template)
	}
	group := awsautoscaling.NewAutoScalingGroup(s.Stack, jsii.String("Instances"), props)
	suppress(group, "CdkNagValidationFailure", "The rule on encrypted disks (EC26) cannot read a mixed instances "+
		"policy. A test checks the launch template instead.")
	if s.GPU.WarmPool > 0 {
		group.AddWarmPool(&awsautoscaling.WarmPoolOptions{
			MinSize: jsii.Number(s.GPU.WarmPool), MaxGroupPreparedCapacity: jsii.Number(s.GPU.WarmPool),
			PoolState: awsautoscaling.PoolState_STOPPED,
		})
	}
	suppress(group, "AwsSolutions-AS3", "Instances start and stop with the load. "+
		"The alarms on the queues show whether jobs are served.")

	capacity := awsecs.NewAsgCapacityProvider(s.Stack, jsii.String("Capacity"), &awsecs.AsgCapacityProviderProps{
		CapacityProviderName: jsii.String(s.name("gpu")), AutoScalingGroup: group,
		MachineImageType:     awsecs.MachineImageType_AMAZON_LINUX_2,
		EnableManagedScaling: jsii.Bool(true), EnableManagedTerminationProtection: jsii.Bool(true),
		EnableManagedDraining: jsii.Bool(true),
		TargetCapacityPercent: jsii.Number(100), MaximumScalingStepSize: jsii.Number(s.GPU.Max),
		InstanceWarmupPeriod: jsii.Number(instanceWarmup),
	})
	s.where.cluster.AddAsgCapacityProvider(capacity, nil)
	suppress(role, "AwsSolutions-IAM5", "The ECS agent discovers its endpoint and registers the instance, "+
		"which has no ARN until then. CDK names every other resource.")
	return capacity
}

// mixedInstances uses the instance types from the options. On-demand instances follow their order;
// spot instances use the types least likely to be reclaimed.
func (s *gpuStack) mixedInstances(template awsec2.LaunchTemplate) *awsautoscaling.MixedInstancesPolicy {
	var types []*awsautoscaling.LaunchTemplateOverrides
	for _, name := range s.GPU.Instances {
		types = append(types,
			&awsautoscaling.LaunchTemplateOverrides{InstanceType: awsec2.NewInstanceType(jsii.String(name))})
	}
	onDemand := 100
	if s.GPU.Spot {
		onDemand = 0
	}
	return &awsautoscaling.MixedInstancesPolicy{
		LaunchTemplate: template, LaunchTemplateOverrides: &types,
		InstancesDistribution: &awsautoscaling.InstancesDistribution{
			OnDemandAllocationStrategy: awsautoscaling.OnDemandAllocationStrategy_PRIORITIZED,
			OnDemandBaseCapacity:       jsii.Number(s.GPU.OnDemand), OnDemandPercentageAboveBaseCapacity: jsii.Number(onDemand),
			SpotAllocationStrategy: awsautoscaling.SpotAllocationStrategy_PRICE_CAPACITY_OPTIMIZED,
		},
	}
}

// newLaunchTemplate creates the instances' launch template. The machine image, which AWS recommends at deployment
// time, has the GPU driver and GPU support in Docker.
func (s *gpuStack) newLaunchTemplate(role awsiam.IRole) awsec2.LaunchTemplate {
	data := awsec2.UserData_ForLinux(nil)
	// Tasks have no access to their instance's credentials. An image that is already present is not
	// pulled again, because its tag is derived from its content.
	data.AddCommands(*jsii.Strings(
		"echo ECS_AWSVPC_BLOCK_IMDS=true >> /etc/ecs/ecs.config",
		"echo ECS_IMAGE_PULL_BEHAVIOR=once >> /etc/ecs/ecs.config",
	)...)
	data.AddCommands(mountInstanceStore()...)
	if s.GPU.Spot {
		// Tasks are stopped as soon as the instance receives its termination notice.
		data.AddCommands(jsii.String("echo ECS_ENABLE_SPOT_INSTANCE_DRAINING=true >> /etc/ecs/ecs.config"))
	}
	if s.GPU.WarmPool > 0 {
		data.AddCommands(jsii.String("echo ECS_WARM_POOLS_CHECK=true >> /etc/ecs/ecs.config"))
	}
	return awsec2.NewLaunchTemplate(s.Stack, jsii.String("LaunchTemplate"), &awsec2.LaunchTemplateProps{
		LaunchTemplateName: jsii.String(s.name("gpu")),
		InstanceType:       awsec2.NewInstanceType(jsii.String(s.GPU.Instances[0])),
		MachineImage:       awsecs.EcsOptimizedImage_AmazonLinux2023(awsecs.AmiHardwareType_GPU, nil),
		Role:               role, UserData: data,
		SecurityGroup:            s.newGPUSecurityGroup("InstanceSecurityGroup", "Instances with GPUs of Cutroom"),
		AssociatePublicIpAddress: jsii.Bool(false),
		RequireImdsv2:            jsii.Bool(true), HttpPutResponseHopLimit: jsii.Number(1),
		BlockDevices: &[]*awsec2.BlockDevice{{
			DeviceName: jsii.String("/dev/xvda"),
			Volume: awsec2.BlockDeviceVolume_Ebs(jsii.Number(s.GPU.Disk), &awsec2.EbsDeviceOptions{
				VolumeType: awsec2.EbsDeviceVolumeType_GP3, Throughput: jsii.Number(diskThroughput),
				Encrypted: jsii.Bool(true), DeleteOnTermination: jsii.Bool(true),
			}),
		}},
	})
}

// mountInstanceStore returns commands that mount the instance's NVMe disk at hostWeights, because it is several times
// as fast as the EBS disk. They format the disk each time, because stopping the instance erases it. Without such a
// disk, the weights are on the EBS disk. The ECS agent starts after these commands.
func mountInstanceStore() []*string {
	return *jsii.Strings(
		"install -d -o 10001 -g 10001 "+hostWeights,
		"store=$(readlink -f /dev/disk/by-id/nvme-Amazon_EC2_NVMe_Instance_Storage_* | sort -u | head -n 1)",
		`if [ -b "$store" ] && mkfs.xfs -f "$store" && mount -o noatime "$store" `+hostWeights+
			"; then chown 10001:10001 "+hostWeights+"; fi",
	)
}
