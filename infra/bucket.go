package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/jsii-runtime-go"

	"cutroom/shared/adapter/s3blob"
	"cutroom/shared/domain/file"
)

// newBucket makes the bucket of all blobs: private, encrypted, over TLS alone.
//
// Its notifications are written as CloudFormation has them, where CDK would put
// a function between. They name the function arrived, whose role names the
// bucket: the bucket's name is therefore a rule (bucketName), not a reference.
func (s *stack) newBucket(arrived awslambda.Function) awss3.Bucket {
	bucket := awss3.NewBucket(s.Stack, jsii.String("Blobs"), &awss3.BucketProps{
		BucketName:        s.bucketName(),
		BlockPublicAccess: awss3.BlockPublicAccess_BLOCK_ALL(),
		Encryption:        awss3.BucketEncryption_S3_MANAGED,
		EnforceSSL:        jsii.Bool(true),
		MinimumTLSVersion: jsii.Number(1.2),
		ObjectOwnership:   awss3.ObjectOwnership_BUCKET_OWNER_ENFORCED,
		RemovalPolicy:     s.removal(),
		LifecycleRules: &[]*awss3.LifecycleRule{
			// A result is kept 24 hours after completion
			// (docs/contract/jobs.md#retention); the lifecycle counts whole days.
			{Id: jsii.String("jobs"), Prefix: jsii.String("jobs/"), Expiration: awscdk.Duration_Days(jsii.Number(2))},
			{Id: jsii.String("broken-uploads"), AbortIncompleteMultipartUploadAfter: awscdk.Duration_Days(jsii.Number(1))},
		},
		Cors: s.bucketCORS(),
	})
	resource := bucket.Node().DefaultChild().(awss3.CfnBucket)
	resource.SetNotificationConfiguration(&awss3.CfnBucket_NotificationConfigurationProperty{
		LambdaConfigurations: []any{&awss3.CfnBucket_LambdaConfigurationProperty{
			Event:    jsii.String("s3:ObjectCreated:*"),
			Function: arrived.FunctionArn(),
			Filter: &awss3.CfnBucket_NotificationFilterProperty{S3Key: &awss3.CfnBucket_S3KeyFilterProperty{
				Rules: []any{
					&awss3.CfnBucket_FilterRuleProperty{Name: jsii.String("prefix"), Value: jsii.String("files/")},
					&awss3.CfnBucket_FilterRuleProperty{Name: jsii.String("suffix"), Value: jsii.String(file.SignedSuffix)},
				},
			}},
		}},
	})
	// S3 tries the notification as it is set.
	bucket.Node().AddDependency(
		awslambda.NewCfnPermission(s.Stack, jsii.String("ArrivedPermission"), &awslambda.CfnPermissionProps{
			Action: jsii.String("lambda:InvokeFunction"), FunctionName: arrived.FunctionArn(),
			Principal: jsii.String("s3.amazonaws.com"),
			SourceArn: s.bucketARN(""), SourceAccount: s.Account(),
		}))
	suppress(bucket, "AwsSolutions-S1", "Access logs of the bucket would cost more than its requests: every request is "+
		"signed by the service's own roles, and CloudTrail's data events are there for those who need them.")
	return bucket
}

// bucketCORS lets browsers put signed uploads straight to the bucket
// (docs/contract/media.md#large-uploads), and follow the redirects of the content
// route.
func (s *stack) bucketCORS() *[]*awss3.CorsRule {
	return &[]*awss3.CorsRule{
		{
			AllowedMethods: &[]awss3.HttpMethods{awss3.HttpMethods_PUT},
			AllowedOrigins: jsii.Strings(s.Origins...),
			AllowedHeaders: jsii.Strings("*"),
			ExposedHeaders: jsii.Strings("ETag"),
			MaxAge:         jsii.Number(3600),
		},
		{
			AllowedMethods: &[]awss3.HttpMethods{awss3.HttpMethods_GET, awss3.HttpMethods_HEAD},
			// A page on any other origin than the API's calls the bucket, after the
			// redirect, with the origin "null", which no list of origins can tell
			// from another's. What guards a result is its URL's signature.
			AllowedOrigins: jsii.Strings("*"),
			AllowedHeaders: jsii.Strings("*"),
			ExposedHeaders: jsii.Strings("ETag", "Accept-Ranges", "Content-Range", "Content-Length", "Content-Disposition"),
			MaxAge:         jsii.Number(3600),
		},
	}
}

// bucketName is unique, as the names of buckets are shared by all accounts.
func (s *stack) bucketName() *string {
	return jsii.String(s3blob.BucketName(s.Stage, "", *s.Account(), *s.Region()))
}

// bucketARN returns the ARN of the bucket, or of the objects under a path such as
// "/jobs/*".
func (s *stack) bucketARN(path string) *string {
	return jsii.String("arn:" + *s.Partition() + ":s3:::" + *s.bucketName() + path)
}
