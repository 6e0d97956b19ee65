package main

import (
	"os"
	"regexp"
	"strconv"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
)

type zones struct {
	Names []string
	Count int
}

var zoneName = regexp.MustCompile(`^[a-z]{2}(-[a-z]+)+-[0-9][a-z]$`)

// zones reads an option whose value is a number of zones from 2 to 6, or zone names separated by commas.
func (r *reader) zones(key string, otherwise int) zones {
	names := r.list(key, strconv.Itoa(otherwise))
	if count, err := strconv.Atoi(names[0]); err == nil && len(names) == 1 && count >= 2 && count <= 6 {
		return zones{Count: count}
	}
	for i, name := range names {
		for _, other := range names[:i] {
			if name == other {
				r.conflict(key, "must not name a zone twice")
			}
		}
		if !zoneName.MatchString(name) {
			r.fail(key, "a number from 2 to 6 or names of zones, not %q", name)
		}
	}
	if len(names) < 2 {
		r.conflict(key, "must name at least two zones")
	}
	return zones{Names: names}
}

var regionsOfTwo = map[string]bool{"us-west-1": true}

// gpuZones returns the default number of zones for the GPU workers' VPC. In more zones, a free GPU is easier to find.
func gpuZones() int {
	if regionsOfTwo[os.Getenv("CDK_DEFAULT_REGION")] {
		return 2
	}
	return 3
}

// list returns a VPC's zones. If they were not listed, CDK would use only two in a template for any region.
func (z zones) list() *[]*string {
	if len(z.Names) > 0 {
		return jsii.Strings(z.Names...)
	}
	var names []*string
	for i := range z.Count {
		names = append(names, awscdk.Fn_Select(jsii.Number(i), awscdk.Fn_GetAzs(nil)))
	}
	return &names
}
