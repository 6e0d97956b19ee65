package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsec2"
	"github.com/aws/jsii-runtime-go"
)

// newGPUNetwork returns the VPC for the GPU workers: the deployer's, or a new one. Instances and tasks have no public
// address. In a new VPC they reach AWS through one NAT gateway, which is cheaper than the eight interface endpoints
// they would need. Weights, blobs, records and image layers, which are most of the traffic, use gateway endpoints
// instead.
func (s *gpuStack) newGPUNetwork() awsec2.IVpc {
	if s.GPU.Network.set() {
		return s.findNetwork(s.GPU.Network, s.GPU.Zones, true)
	}
	vpc := awsec2.NewVpc(s.Stack, jsii.String("Network"), &awsec2.VpcProps{
		VpcName:                      jsii.String(s.name("gpu")),
		AvailabilityZones:            s.GPU.Zones.list(),
		IpAddresses:                  awsec2.IpAddresses_Cidr(jsii.String(s.GPU.NetworkCIDR)),
		NatGateways:                  jsii.Number(1),
		RestrictDefaultSecurityGroup: jsii.Bool(true),
		SubnetConfiguration: &[]*awsec2.SubnetConfiguration{
			{Name: jsii.String("private"), SubnetType: awsec2.SubnetType_PRIVATE_WITH_EGRESS, CidrMask: jsii.Number(20)},
			// This subnet contains only the NAT gateway.
			{Name: jsii.String("public"), SubnetType: awsec2.SubnetType_PUBLIC, CidrMask: jsii.Number(28), MapPublicIpOnLaunch: jsii.Bool(false)},
		},
		GatewayEndpoints: &map[string]*awsec2.GatewayVpcEndpointOptions{
			"S3":       {Service: awsec2.GatewayVpcEndpointAwsService_S3()},
			"DynamoDB": {Service: awsec2.GatewayVpcEndpointAwsService_DYNAMODB()},
		},
	})
	suppress(vpc, "AwsSolutions-VPC7", "Flow logs are billed by volume, which media and weights make large. Nothing in "+
		"the network accepts connections, and its calls are in CloudTrail and in the logs of the containers.")
	return vpc
}

func privateSubnets() *awsec2.SubnetSelection {
	return &awsec2.SubnetSelection{SubnetType: awsec2.SubnetType_PRIVATE_WITH_EGRESS}
}

// newGPUSecurityGroup creates a group that accepts no connections and allows only outgoing TLS
// connections, because its programs read untrusted files.
func (s *gpuStack) newGPUSecurityGroup(id, description string) awsec2.SecurityGroup {
	group := awsec2.NewSecurityGroup(s.Stack, jsii.String(id), &awsec2.SecurityGroupProps{
		Vpc: s.where.vpc, Description: jsii.String(description), AllowAllOutbound: jsii.Bool(false),
	})
	group.AddEgressRule(awsec2.Peer_AnyIpv4(), awsec2.Port_Tcp(jsii.Number(443)), jsii.String("AWS"), nil)
	return group
}
