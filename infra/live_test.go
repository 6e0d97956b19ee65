package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

const turnSecretOfTests = "arn:aws:secretsmanager:eu-central-1:000000000000:secret:turn-AbCdEf"

// liveContext returns the context of a stack with realtime sessions and additional options.
func liveContext(more map[string]any) map[string]any {
	context := map[string]any{
		"watch": "off", "workerImage": "worker", "realtime": "true", "realtimeImage": "realtime",
		"realtimeDomain":      "realtime.example.com",
		"realtimeCertificate": "arn:aws:acm:eu-central-1:123456789012:certificate/1",
	}
	maps.Copy(context, more)
	return context
}

// openPorts returns the rules (source, protocol and ports) of the security group whose id starts with group.
func (m template) openPorts(t *testing.T, group string) []string {
	t.Helper()
	var open []string
	note := func(rule any) {
		if rule == nil {
			return
		}
		from := "a group"
		for _, block := range []string{"CidrIp", "CidrIpv6"} {
			if at(rule, block) != nil {
				from = fmt.Sprint(at(rule, block))
			}
		}
		open = append(open,
			fmt.Sprintf("%s %v %v-%v", from, at(rule, "IpProtocol"), at(rule, "FromPort"), at(rule, "ToPort")))
	}
	for id, r := range m.of(t, "AWS::EC2::SecurityGroup") {
		if strings.HasPrefix(id, group) {
			for _, rule := range list(r.Properties["SecurityGroupIngress"]) {
				note(rule)
			}
		}
	}
	for _, r := range m.resources {
		of := fmt.Sprint(at(r.Properties, "GroupId", "Fn::GetAtt"))
		if r.Type == "AWS::EC2::SecurityGroupIngress" && strings.HasPrefix(of, "["+group) {
			note(r.Properties)
		}
	}
	slices.Sort(open)
	return open
}

func (m template) realtimeTask(t *testing.T) (variables map[string]string, ports []string) {
	t.Helper()
	for _, task := range m.of(t, "AWS::ECS::TaskDefinition") {
		if task.Properties["Family"] != "cutroom-dev-realtime" {
			continue
		}
		container := list(at(task.Properties, "ContainerDefinitions"))[0]
		variables = map[string]string{}
		for _, variable := range list(at(container, "Environment")) {
			variables[fmt.Sprint(at(variable, "Name"))] = fmt.Sprint(at(variable, "Value"))
		}
		for _, port := range list(at(container, "PortMappings")) {
			ports = append(ports, fmt.Sprint(at(port, "ContainerPort"), " ", at(port, "Protocol")))
		}
	}
	return variables, ports
}

func (m template) mayDescribeInterfaces(t *testing.T) bool {
	t.Helper()
	return slices.ContainsFunc(m.permissions(t), func(line string) bool {
		return strings.HasPrefix(line, "RealtimeTaskRole") && strings.Contains(line, "ec2:DescribeNetworkInterfaces")
	})
}

// By default live video is off, and only the load balancer can reach a task.
func TestLiveVideoIsOptional(t *testing.T) {
	made := containersOf(t)
	if open := made.openPorts(t, "RealtimeSecurityGroup"); !slices.Equal(open, []string{"a group tcp 8080-8080"}) {
		t.Errorf("the open ports are %q", open)
	}
	variables, ports := made.realtimeTask(t)
	for name := range variables {
		if strings.HasPrefix(name, "CUTROOM_RTC") {
			t.Errorf("the task has %s", name)
		}
	}
	if !slices.Equal(ports, []string{"8080 tcp"}) || made.mayDescribeInterfaces(t) {
		t.Errorf("the task has the ports %q, and may read its address: %t", ports, made.mayDescribeInterfaces(t))
	}
}

// The signaling port is open to the load balancer and between tasks.
func TestLiveVideoReachesTasksDirectly(t *testing.T) {
	made := synthesize(t, liveContext(map[string]any{"webrtc": "true"}))
	want := []string{"0.0.0.0/0 tcp 8082-8082", "0.0.0.0/0 udp 8082-8082", "::/0 tcp 8082-8082", "::/0 udp 8082-8082",
		"a group tcp 8080-8080", "a group tcp 8080-8080"}
	if open := made.openPorts(t, "RealtimeSecurityGroup"); !slices.Equal(open, want) {
		t.Errorf("the open ports are %q, want %q", open, want)
	}
	variables, ports := made.realtimeTask(t)
	if variables["CUTROOM_RTC_ADDR"] != ":8082" || variables["CUTROOM_RTC_PUBLIC"] != "ecs" ||
		variables["CUTROOM_RTC_TURN"] != "" || variables["CUTROOM_PEER_ADDR"] != ":0" ||
		variables["CUTROOM_PUBLIC_URL"] == "" {
		t.Errorf("the task has %v", variables)
	}
	if !slices.Equal(ports, []string{"8080 tcp", "8082 udp", "8082 tcp"}) {
		t.Errorf("the task has the ports %q", ports)
	}
	if !made.mayDescribeInterfaces(t) {
		t.Error("the task may not read its address")
	}
	for _, service := range made.of(t, "AWS::ECS::Service") {
		network := at(service.Properties, "NetworkConfiguration", "AwsvpcConfiguration")
		if at(network, "AssignPublicIp") != "ENABLED" {
			t.Errorf("%v has no public address", service.Properties["ServiceName"])
		}
		// The task may need a minute to find its address.
		grace := service.Properties["HealthCheckGracePeriodSeconds"]
		if service.Properties["ServiceName"] == "cutroom-dev-realtime" && grace != 90.0 {
			t.Errorf("a task may take %v s to start", grace)
		}
	}
}

// The containers run in the named subnets of the deployer's VPC, and no network is created.
// Everything else is as in the stack's own network.
func TestContainersUseTheDeployerNetwork(t *testing.T) {
	made := synthesize(t, liveContext(map[string]any{
		"webrtc": "true", "networkVpc": "vpc-0a1b2c3d", "networkSubnets": "subnet-0a1b2c3d,subnet-1a1b2c3d",
		"networkZones": "eu-central-1a,eu-central-1b",
	}))
	for id, r := range made.resources {
		if r.Type == "AWS::EC2::VPC" || r.Type == "AWS::EC2::Subnet" || r.Type == "AWS::EC2::VPCEndpoint" {
			t.Errorf("%s is created", id)
		}
	}
	for _, group := range made.of(t, "AWS::EC2::SecurityGroup") {
		if group.Properties["VpcId"] != "vpc-0a1b2c3d" {
			t.Errorf("a security group is in %v", group.Properties["VpcId"])
		}
	}
	want := []any{"subnet-0a1b2c3d", "subnet-1a1b2c3d"}
	for _, service := range made.of(t, "AWS::ECS::Service") {
		network := at(service.Properties, "NetworkConfiguration", "AwsvpcConfiguration")
		if fmt.Sprint(at(network, "Subnets")) != fmt.Sprint(want) || at(network, "AssignPublicIp") != "ENABLED" {
			t.Errorf("%v is in %v", service.Properties["ServiceName"], network)
		}
	}
	for _, balancer := range made.of(t, "AWS::ElasticLoadBalancingV2::LoadBalancer") {
		if fmt.Sprint(balancer.Properties["Subnets"]) != fmt.Sprint(want) {
			t.Errorf("the load balancer is in %v", balancer.Properties["Subnets"])
		}
	}
}

// Relays have a secret that the task may read.
func TestLiveVideoUsesConfiguredRelays(t *testing.T) {
	made := synthesize(t, contextOfPolicies)
	variables, _ := made.realtimeTask(t)
	if variables["CUTROOM_RTC_TURN"] != "turns:turn.example.com:443?transport=tcp,turn:turn.example.com" ||
		variables["CUTROOM_RTC_TURN_SECRET_ARN"] != turnSecretOfTests {
		t.Errorf("the task has %v", variables)
	}
	if !slices.ContainsFunc(made.permissions(t), func(line string) bool {
		return strings.HasPrefix(line, "RealtimeTaskRole") && strings.Contains(line, "secretsmanager:GetSecretValue") &&
			strings.Contains(line, turnSecretOfTests)
	}) {
		t.Error("the task may not read the secret")
	}
}
