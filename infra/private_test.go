package main

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/aws/jsii-runtime-go"
)

// In the private form nothing has a public address, and the APIs respond only to a network's endpoint.
func TestPrivateStageHasNoPublicAddress(t *testing.T) {
	context := maps.Clone(contextOfContainers)
	maps.Copy(context, map[string]any{"private": "true", "apiEndpoints": "vpce-1,vpce-2", "networkVpc": "vpc-1",
		"networkSubnets": "subnet-1,subnet-2", "networkZones": "eu-central-1a,eu-central-1b"})
	made := synthesize(t, context)
	made.ResourceCountIs(jsii.String("AWS::EC2::VPC"), jsii.Number(0))
	const subnets = "[subnet-1 subnet-2]"
	for id, service := range made.of(t, "AWS::ECS::Service") {
		network := at(service.Properties, "NetworkConfiguration", "AwsvpcConfiguration")
		if at(network, "AssignPublicIp") != "DISABLED" || fmt.Sprint(at(network, "Subnets")) != subnets {
			t.Errorf("%s is in %v", id, network)
		}
	}
	for id, balancer := range made.of(t, "AWS::ElasticLoadBalancingV2::LoadBalancer") {
		if balancer.Properties["Scheme"] != "internal" || fmt.Sprint(balancer.Properties["Subnets"]) != subnets {
			t.Errorf("%s is %v in %v", id, balancer.Properties["Scheme"], balancer.Properties["Subnets"])
		}
	}
	for id, api := range made.of(t, "AWS::ApiGateway::RestApi") {
		if got := fmt.Sprint(api.Properties["EndpointConfiguration"]); got != "map[Types:[PRIVATE] VpcEndpointIds:[vpce-1 vpce-2]]" {
			t.Errorf("%s has the endpoint %s", id, got)
		}
		for _, statement := range list(at(api.Properties, "Policy", "Statement")) {
			if at(statement, "Effect") == "Deny" && fmt.Sprint(at(statement, "Condition")) != "map[StringNotEquals:map[aws:SourceVpce:[vpce-1 vpce-2]]]" {
				t.Errorf("%s rejects %v", id, statement)
			}
		}
	}
	if url := fmt.Sprint(*(*made.FindOutputs(jsii.String("InferenceUrl"), nil))["InferenceUrl"]); !strings.Contains(url, "-vpce-1.execute-api.") {
		t.Errorf("the URL is %s", url)
	}
}

// A deployer chooses the networks' address blocks, or gives subnets for the GPUs too.
func TestNetworksFitTheDeployersPlan(t *testing.T) {
	for cidr, made := range map[string]template{
		"10.20.0.0/16": synthesize(t, contextOfChoices),
		"10.30.0.0/18": synthesizeGPU(t, map[string]any{"gpu.networkCidr": "10.30.0.0/18"}),
	} {
		if got := made.only(t, "AWS::EC2::VPC")["CidrBlock"]; got != cidr {
			t.Errorf("the network is %v, want %s", got, cidr)
		}
	}
	made := synthesizeGPU(t, map[string]any{"gpu.vpc": "vpc-1", "gpu.subnets": "subnet-1,subnet-2", "gpu.zones": "eu-central-1a,eu-central-1b"})
	for _, kind := range []string{"AWS::EC2::VPC", "AWS::EC2::NatGateway", "AWS::EC2::EIP", "AWS::EC2::VPCEndpoint"} {
		made.ResourceCountIs(jsii.String(kind), jsii.Number(0))
	}
	if got := made.only(t, "AWS::AutoScaling::AutoScalingGroup")["VPCZoneIdentifier"]; fmt.Sprint(got) != "[subnet-1 subnet-2]" {
		t.Errorf("the instances are in %v", got)
	}
}
