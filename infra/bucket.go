package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/jsii-runtime-go"

	"cutroom/shared/adapter/s3blob"
	"cutroom/shared/domain/file"
)

// newBucket creates the bucket for all blobs: private, encrypted, accessible over TLS only.
//
// The notification is set on the CloudFormation resource, because CDK would add a function for it. The notification
// refers to the arrived function, and the function's role refers to the bucket. To avoid the cycle, the bucket's name
// is computed (bucketName) instead of referenced.
func (s *stack) newBucket(arrived awslambda.IFunction) awss3.Bucket {
	rules := []*awss3.LifecycleRule{
		// A result is kept for 24 hours after completion (docs/contract/jobs.md#retention). One day would be too
		// short, because a lifecycle rule counts whole days from an object's creation.
		{Id: jsii.String("jobs"), Prefix: jsii.String("jobs/"), Expiration: awscdk.Duration_Days(jsii.Number(2))},
		// A batch lasts up to a day, and its blobs are normally deleted when it ends.
		{Id: jsii.String("batches"), Prefix: jsii.String("batches/"), Expiration: awscdk.Duration_Days(jsii.Number(3))},
		{Id: jsii.String("broken-uploads"), AbortIncompleteMultipartUploadAfter: awscdk.Duration_Days(jsii.Number(1))},
	}
	if s.KeepVersions > 0 {
		rules = append(rules, &awss3.LifecycleRule{Id: jsii.String("versions"), ExpiredObjectDeleteMarker: jsii.Bool(true),
			NoncurrentVersionExpiration: awscdk.Duration_Days(jsii.Number(s.KeepVersions))})
	}
	bucket := awss3.NewBucket(s.Stack, jsii.String("Blobs"), &awss3.BucketProps{
		BucketName:        s.bucketName(),
		BlockPublicAccess: awss3.BlockPublicAccess_BLOCK_ALL(),
		Encryption:        awss3.BucketEncryption_S3_MANAGED,
		EnforceSSL:        jsii.Bool(true),
		MinimumTLSVersion: jsii.Number(1.2),
		ObjectOwnership:   awss3.ObjectOwnership_BUCKET_OWNER_ENFORCED,
		RemovalPolicy:     s.removal(),
		LifecycleRules:    &rules,
		Versioned:         jsii.Bool(s.KeepVersions > 0),
		Cors:              s.bucketCORS(),
	})
	if arrived != nil {
		s.notifyArrivals(bucket, arrived)
	}
	suppress(bucket, "AwsSolutions-S1",
		"Access logs would cost more than the requests themselves. Every request is signed by a "+
			"role of the service, and a deployer who needs a record can turn on CloudTrail data events.")
	return bucket
}

func (s *stack) notifyArrivals(bucket awss3.Bucket, arrived awslambda.IFunction) {
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
	// S3 tests the notification when it is configured, so the permission must already exist.
	bucket.Node().AddDependency(
		awslambda.NewCfnPermission(s.Stack, jsii.String("ArrivedPermission"), &awslambda.CfnPermissionProps{
			Action: jsii.String("lambda:InvokeFunction"), FunctionName: arrived.FunctionArn(),
			Principal: jsii.String("s3.amazonaws.com"),
			SourceArn: s.bucketARN(""), SourceAccount: s.Account(),
		}))
}

// bucketCORS lets browsers upload directly to the bucket with signed URLs
// (docs/contract/media.md#large-uploads) and follow the content route's redirects.
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
			// A browser that follows a redirect to another origin sends the origin "null", so a list of origins
			// would not match it. A result is protected by the signature in its URL.
			AllowedOrigins: jsii.Strings("*"),
			AllowedHeaders: jsii.Strings("*"),
			ExposedHeaders: jsii.Strings("ETag", "Accept-Ranges", "Content-Range", "Content-Length", "Content-Disposition"),
			MaxAge:         jsii.Number(3600),
		},
	}
}

// bucketName returns a unique name, because all AWS accounts share one namespace for bucket names.
func (s *stack) bucketName() *string {
	return jsii.String(s3blob.BucketName(s.Stage, "", *s.Account(), *s.Region()))
}

func (s *stack) bucketARN(path string) *string {
	return jsii.String("arn:" + *s.Partition() + ":s3:::" + *s.bucketName() + path)
}
