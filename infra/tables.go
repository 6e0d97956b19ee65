package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/jsii-runtime-go"

	"cutroom/shared/adapter/dynamo"
)

// newTables creates the tables listed in dynamo.Tables and returns them by name. They are billed
// per request and cost nothing while idle.
func (s *stack) newTables() map[string]awsdynamodb.ITableV2 {
	tables := map[string]awsdynamodb.ITableV2{}
	for _, table := range dynamo.Tables() {
		props := &awsdynamodb.TablePropsV2{
			TableName:    jsii.String(dynamo.TableName(s.Stage, table.Name)),
			Billing:      awsdynamodb.Billing_OnDemand(nil),
			PartitionKey: stringKey(table.PartitionKey),
			PointInTimeRecoverySpecification: &awsdynamodb.PointInTimeRecoverySpecification{
				PointInTimeRecoveryEnabled: jsii.Bool(true),
			},
			DeletionProtection: jsii.Bool(s.Protected),
			RemovalPolicy:      s.removal(),
		}
		if table.SortKey != "" {
			props.SortKey = stringKey(table.SortKey)
		}
		if table.TTL != "" {
			props.TimeToLiveAttribute = jsii.String(table.TTL)
		}
		if table.StreamsOldImages {
			props.DynamoStream = awsdynamodb.StreamViewType_OLD_IMAGE
		}
		if table.StreamsNewImages {
			props.DynamoStream = awsdynamodb.StreamViewType_NEW_IMAGE
		}
		var indexes []*awsdynamodb.GlobalSecondaryIndexPropsV2
		for _, index := range table.Indexes {
			global := &awsdynamodb.GlobalSecondaryIndexPropsV2{
				IndexName: jsii.String(index.Name), PartitionKey: stringKey(index.PartitionKey),
				ProjectionType: awsdynamodb.ProjectionType_ALL,
			}
			if len(index.Includes) > 0 {
				global.ProjectionType, global.NonKeyAttributes = awsdynamodb.ProjectionType_INCLUDE, jsii.Strings(index.Includes...)
			}
			if index.SortKey != "" {
				global.SortKey = stringKey(index.SortKey)
			}
			indexes = append(indexes, global)
		}
		if len(indexes) > 0 {
			props.GlobalSecondaryIndexes = &indexes
		}
		tables[table.Name] = awsdynamodb.NewTableV2(s.Stack, jsii.String(title(table.Name)+"Table"), props)
	}
	return tables
}

func stringKey(attribute string) *awsdynamodb.Attribute {
	return &awsdynamodb.Attribute{Name: jsii.String(attribute), Type: awsdynamodb.AttributeType_STRING}
}

// removal returns the removal policy for data, which applies when the stack is deleted. With RETAIN_ON_UPDATE_OR_DELETE,
// CloudFormation would try to delete the tables if their first deployment failed. Their deletion protection forbids that,
// so the rollback would fail too.
func (s *stack) removal() awscdk.RemovalPolicy {
	if s.Protected {
		return awscdk.RemovalPolicy_RETAIN
	}
	return awscdk.RemovalPolicy_DESTROY
}
