package main

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// zonesOf returns the zones in a template's subnets: a name such as "eu-west-1a", or "0" for the first zone that
// CloudFormation lists.
func zonesOf(t *testing.T, made template) []string {
	t.Helper()
	var found []string
	for _, subnet := range made.of(t, "AWS::EC2::Subnet") {
		zone := subnet.Properties["AvailabilityZone"]
		if selected := at(zone, "Fn::Select"); selected != nil {
			zone = list(selected)[0]
		}
		found = append(found, fmt.Sprint(zone))
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// The number of zones is configured. It does not depend on the region, which may be unknown at synthesis.
func TestZonesAreConfigurable(t *testing.T) {
	service := func(context map[string]any) template { return synthesize(t, context) }
	gpus := func(context map[string]any) template { return synthesizeGPU(t, context) }
	for name, c := range map[string]struct {
		make    func(map[string]any) template
		context map[string]any
		want    string
	}{
		"workers":          {service, contextOfPreviews, "0 1"},
		"workers by names": {service, contextOfChoices, "eu-west-1a eu-west-1c"},
		"GPUs":             {gpus, nil, "0 1 2"},
		"GPUs in two":      {gpus, map[string]any{"gpu.zones": "2"}, "0 1"},
		"GPUs by names":    {gpus, map[string]any{"gpu.zones": "us-east-1b,us-east-1d"}, "us-east-1b us-east-1d"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(zonesOf(t, c.make(c.context)), " "); got != c.want {
				t.Errorf("the zones are %s, want %s", got, c.want)
			}
		})
	}
	t.Run("GPUs in a region with two zones", func(t *testing.T) {
		t.Setenv("CDK_DEFAULT_REGION", "us-west-1")
		if o, err := readOptions(map[string]any{"gpu": "true"}); err != nil || o.GPU.Zones.Count != 2 {
			t.Errorf("%+v, %v", o.GPU.Zones, err)
		}
	})
}

// If the first instance type is unavailable, EC2 uses the next one.
func TestInstancesFallBackInOrder(t *testing.T) {
	group := synthesizeGPU(t, map[string]any{"gpu.instances": "g6e.8xlarge,g6e.2xlarge,g5.4xlarge"}).
		only(t, "AWS::AutoScaling::AutoScalingGroup")
	policy := group["MixedInstancesPolicy"]
	var types []string
	for _, override := range list(at(policy, "LaunchTemplate", "Overrides")) {
		types = append(types, fmt.Sprint(at(override, "InstanceType")))
	}
	if got := strings.Join(types, " "); got != "g6e.8xlarge g6e.2xlarge g5.4xlarge" ||
		at(policy, "InstancesDistribution", "OnDemandAllocationStrategy") != "prioritized" {
		t.Errorf("instances are taken from %s: %v", got, at(policy, "InstancesDistribution"))
	}
}

func TestDefaultSecurityGroupsAllowNothing(t *testing.T) {
	for _, made := range []template{synthesize(t, contextOfPreviews), synthesizeGPU(t, nil)} {
		network := slices.Collect(maps.Keys(made.of(t, "AWS::EC2::VPC")))[0]
		group := made.only(t, "Custom::VpcRestrictDefaultSG")["DefaultSecurityGroupId"]
		if want := []any{network, "DefaultSecurityGroup"}; !reflect.DeepEqual(at(group, "Fn::GetAtt"), any(want)) {
			t.Errorf("the rules of %v are removed, want those of %s", group, network)
		}
	}
}
