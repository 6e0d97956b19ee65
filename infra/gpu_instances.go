package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsautoscaling"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsec2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsecs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"
)

const (
	// diskThroughput is in MiB/s. Images and weights are read from the disk when a
	// task starts, for which the 125 that gp3 begins with would be a bottleneck.
	diskThroughput = 500
	// instanceWarmup is how long an instance may take until it counts, in seconds.
	instanceWarmup = 300
)

// newGPUCapacity makes the instances: none while no task wants one, and no more
// than there may be tasks. ECS starts them for tasks that find no place, and ends
// those that have no task, never one that has.
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
		props.LaunchTemplate = template // warm pools take no mixed instances
	} else {
		props.MixedInstancesPolicy = s.mixedInstances(template)
	}
	group := awsautoscaling.NewAutoScalingGroup(s.Stack, jsii.String("Instances"), props)
	suppress(group, "CdkNagValidationFailure", "The rule on encrypted disks (EC26) cannot read a policy of mixed "+
		"instances. A test reads the launch template in its place.")
	if s.GPU.WarmPool > 0 {
		group.AddWarmPool(&awsautoscaling.WarmPoolOptions{
			MinSize: jsii.Number(s.GPU.WarmPool), MaxGroupPreparedCapacity: jsii.Number(s.GPU.WarmPool),
			PoolState: awsautoscaling.PoolState_STOPPED,
		})
	}
	suppress(group, "AwsSolutions-AS3", "Instances come and go with the work; what matters is whether jobs are served, "+
		"which the alarms of the queues watch.")

	capacity := awsecs.NewAsgCapacityProvider(s.Stack, jsii.String("Capacity"), &awsecs.AsgCapacityProviderProps{
		CapacityProviderName: jsii.String(s.name("gpu")), AutoScalingGroup: group,
		MachineImageType:     awsecs.MachineImageType_AMAZON_LINUX_2,
		EnableManagedScaling: jsii.Bool(true), EnableManagedTerminationProtection: jsii.Bool(true),
		EnableManagedDraining: jsii.Bool(true),
		TargetCapacityPercent: jsii.Number(100), MaximumScalingStepSize: jsii.Number(s.GPU.Max),
		InstanceWarmupPeriod: jsii.Number(instanceWarmup),
	})
	s.where.cluster.AddAsgCapacityProvider(capacity, nil)
	suppress(role, "AwsSolutions-IAM5", "The agent of ECS asks for an endpoint of its own, and registers an instance "+
		"that has no name before. CDK names the rest.")
	return capacity
}

// mixedInstances takes the types of the options, the first ones first on demand,
// and on the spot market those that are the least likely to be taken back.
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

// newLaunchTemplate says what an instance is. Its image is that which AWS
// recommends at the time of a deploy, with the driver and Docker's support of GPUs.
func (s *gpuStack) newLaunchTemplate(role awsiam.IRole) awsec2.LaunchTemplate {
	data := awsec2.UserData_ForLinux(nil)
	// Tasks do not reach the credentials of their instance. An image that is there
	// is not pulled again: its tag is of its content.
	data.AddCommands(*jsii.Strings(
		"echo ECS_AWSVPC_BLOCK_IMDS=true >> /etc/ecs/ecs.config",
		"echo ECS_IMAGE_PULL_BEHAVIOR=once >> /etc/ecs/ecs.config",
	)...)
	if s.GPU.Spot {
		// Tasks end as soon as an instance is told that it will be taken back.
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
