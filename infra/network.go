package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsec2"
	"github.com/aws/jsii-runtime-go"
)

// newNetwork returns the VPC of the container services: the deployer's, or a new one. A new VPC has
// only public subnets, because a NAT gateway would cost more than the rest of the deployment. No
// service accepts unexpected connections.
func (s *stack) newNetwork() awsec2.IVpc {
	if s.ContainerNetwork.set() {
		vpc := awsec2.Vpc_FromVpcAttributes(s.Stack, jsii.String("Network"), &awsec2.VpcAttributes{
			VpcId: jsii.String(s.ContainerNetwork.VPC), AvailabilityZones: s.Zones.list(),
			PublicSubnetIds: jsii.Strings(s.ContainerNetwork.Subnets...),
		})
		// The deployer manages the route tables.
		awscdk.Annotations_Of(s.Stack).AcknowledgeWarning(jsii.String("@aws-cdk/aws-ec2:noSubnetRouteTableId"), nil)
		return vpc
	}
	vpc := awsec2.NewVpc(s.Stack, jsii.String("Network"), &awsec2.VpcProps{
		VpcName:                      jsii.String(s.prefix()),
		AvailabilityZones:            s.Zones.list(),
		NatGateways:                  jsii.Number(0),
		RestrictDefaultSecurityGroup: jsii.Bool(true),
		SubnetConfiguration: &[]*awsec2.SubnetConfiguration{{
			Name: jsii.String("public"), SubnetType: awsec2.SubnetType_PUBLIC, CidrMask: jsii.Number(20),
		}},
		// With these endpoints, traffic for blobs and records stays in the VPC and is free.
		GatewayEndpoints: &map[string]*awsec2.GatewayVpcEndpointOptions{
			"S3":       {Service: awsec2.GatewayVpcEndpointAwsService_S3()},
			"DynamoDB": {Service: awsec2.GatewayVpcEndpointAwsService_DYNAMODB()},
		},
	})
	suppress(vpc, "AwsSolutions-VPC7", "Flow logs are billed by volume, which media makes large. The APIs log their "+
		"callers, and the services log their actions.")
	return vpc
}
