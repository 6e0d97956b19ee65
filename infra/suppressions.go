package main

import (
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
	"github.com/cdklabs/cdk-nag-go/cdknag/v2"
)

// suppress records why an AwsSolutions rule does not apply to a construct and its children. If findings are given,
// only these findings are suppressed.
func suppress(construct constructs.IConstruct, rule, reason string, findings ...string) {
	suppression := &cdknag.NagPackSuppression{Id: jsii.String(rule), Reason: jsii.String(reason)}
	if len(findings) > 0 {
		var appliesTo []any
		for _, finding := range findings {
			appliesTo = append(appliesTo, finding)
		}
		suppression.AppliesTo = &appliesTo
	}
	cdknag.NagSuppressions_AddResourceSuppressions(construct, &[]*cdknag.NagPackSuppression{suppression}, jsii.Bool(true))
}
