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
		return s.findNetwork(s.ContainerNetwork, s.Zones, s.Private)
	}
	vpc := awsec2.NewVpc(s.Stack, jsii.String("Network"), &awsec2.VpcProps{
		VpcName:                      jsii.String(s.prefix()),
		AvailabilityZones:            s.Zones.list(),
		IpAddresses:                  awsec2.IpAddresses_Cidr(jsii.String(s.NetworkCIDR)),
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

// findNetwork returns the deployer's VPC, with the subnets that the options name.
func (s *stack) findNetwork(n network, in zones, private bool) awsec2.IVpc {
	attributes := &awsec2.VpcAttributes{VpcId: jsii.String(n.VPC), AvailabilityZones: in.list()}
	if subnets := jsii.Strings(n.Subnets...); private {
		attributes.PrivateSubnetIds = subnets
	} else {
		attributes.PublicSubnetIds = subnets
	}
	// The deployer manages the route tables.
	awscdk.Annotations_Of(s.Stack).AcknowledgeWarning(jsii.String("@aws-cdk/aws-ec2:noSubnetRouteTableId"), nil)
	return awsec2.Vpc_FromVpcAttributes(s.Stack, jsii.String("Network"), attributes)
}
