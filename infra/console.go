package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscertificatemanager"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudfront"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudfrontorigins"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3deployment"
	"github.com/aws/jsii-runtime-go"

	"cutroom/shared/adapter/s3blob"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/service/console"
)

// formOfFunction is the maximum size, in bytes, of form data that a function accepts. API Gateway and Lambda
// accept 6 MB, and the file is in base64. The console uploads larger files through a signed URL.
const formOfFunction = 4 << 20

// newConsole serves the console from a private bucket through CloudFront, if requested.
func (s *stack) newConsole(media, inference awsapigateway.RestApi) error {
	if !s.Console {
		return nil
	}
	bucket := awss3.NewBucket(s.Stack, jsii.String("ConsoleFiles"), &awss3.BucketProps{
		BucketName:        jsii.String(s3blob.BucketName(s.Stage, s3blob.ConsoleBucket, *s.Account(), *s.Region())),
		BlockPublicAccess: awss3.BlockPublicAccess_BLOCK_ALL(),
		Encryption:        awss3.BucketEncryption_S3_MANAGED,
		EnforceSSL:        jsii.Bool(true),
		MinimumTLSVersion: jsii.Number(1.2),
		ObjectOwnership:   awss3.ObjectOwnership_BUCKET_OWNER_ENFORCED,
		RemovalPolicy:     awscdk.RemovalPolicy_DESTROY, // every deployment writes the content again
	})
	suppress(bucket, "AwsSolutions-S1",
		"The bucket holds a public page, which is the same for everyone and contains no data.")

	properties := &awscloudfront.DistributionProps{
		Comment:           jsii.String("Console of Cutroom, stage " + s.Stage),
		DefaultRootObject: jsii.String(console.Index),
		DefaultBehavior: &awscloudfront.BehaviorOptions{
			Origin: awscloudfrontorigins.S3BucketOrigin_WithOriginAccessControl(bucket, &awscloudfrontorigins.S3BucketOriginWithOACProps{
				OriginAccessControl: s.consoleAccess(),
			}),
			ViewerProtocolPolicy:  awscloudfront.ViewerProtocolPolicy_REDIRECT_TO_HTTPS,
			CachePolicy:           awscloudfront.CachePolicy_CACHING_OPTIMIZED(),
			ResponseHeadersPolicy: s.consoleHeaders(s.originOf(media, s.Media), s.originOf(inference, s.Inference)),
			Compress:              jsii.Bool(true),
		},
		HttpVersion:            awscloudfront.HttpVersion_HTTP2_AND_3,
		MinimumProtocolVersion: awscloudfront.SecurityPolicyProtocol_TLS_V1_2_2021,
		PriceClass:             awscloudfront.PriceClass_PRICE_CLASS_100,
	}
	if s.ConsoleDomain.set() {
		properties.DomainNames = jsii.Strings(s.ConsoleDomain.Name)
		properties.Certificate = awscertificatemanager.Certificate_FromCertificateArn(s.Stack,
			jsii.String("ConsoleCertificate"), jsii.String(s.ConsoleDomain.Certificate))
	}
	distribution := awscloudfront.NewDistribution(s.Stack, jsii.String("Console"), properties)
	suppress(distribution, "AwsSolutions-CFR1",
		"Geographic restrictions are up to the deployer. The APIs require a key wherever a call comes from.")
	suppress(distribution, "AwsSolutions-CFR2",
		"The page is static and the same for everyone. The APIs that it calls have their own limits.")
	suppress(distribution, "AwsSolutions-CFR3",
		"Access logs would only show who read the page. The APIs log their calls.")
	if !s.ConsoleDomain.set() {
		suppress(distribution, "AwsSolutions-CFR4",
			"CloudFront's default certificate fixes the TLS version. With consoleDomain the minimum is TLS 1.2.")
	}
	if err := s.fillConsole(bucket, *s.urlOf(media, s.Media), *s.urlOf(inference, s.Inference)); err != nil {
		return err
	}
	address := distribution.DistributionDomainName()
	if s.ConsoleDomain.set() {
		s.output("ConsoleDomainTarget", "Alias target for the name of the console", address)
		address = jsii.String(s.ConsoleDomain.Name)
	}
	s.output("ConsoleUrl", "URL of the console", jsii.String("https://"+*address))
	return nil
}

func (s *stack) globalName(what string) *string { return jsii.String(s.name(what) + "-" + *s.Region()) }

func (s *stack) consoleAccess() awscloudfront.S3OriginAccessControl {
	return awscloudfront.NewS3OriginAccessControl(s.Stack, jsii.String("ConsoleAccess"),
		&awscloudfront.S3OriginAccessControlProps{
			OriginAccessControlName: s.globalName("console"), Signing: awscloudfront.Signing_SIGV4_ALWAYS(),
		})
}

// consoleHeaders returns the page's header fields. They allow the page to call the two APIs and to
// upload large files to the blob bucket.
func (s *stack) consoleHeaders(media, inference string) awscloudfront.ResponseHeadersPolicy {
	blobs := "https://" + *s.bucketName() + ".s3." + *s.Region() + "." + *s.UrlSuffix()
	return awscloudfront.NewResponseHeadersPolicy(s.Stack, jsii.String("ConsoleHeaders"),
		&awscloudfront.ResponseHeadersPolicyProps{
			ResponseHeadersPolicyName: s.globalName("console"),
			Comment:                   jsii.String("Console of Cutroom, stage " + s.Stage),
			SecurityHeadersBehavior: &awscloudfront.ResponseSecurityHeadersBehavior{
				ContentSecurityPolicy: &awscloudfront.ResponseHeadersContentSecurityPolicy{
					ContentSecurityPolicy: jsii.String(console.Policy(media, inference, blobs)), Override: jsii.Bool(true),
				},
				ContentTypeOptions: &awscloudfront.ResponseHeadersContentTypeOptions{Override: jsii.Bool(true)},
				FrameOptions: &awscloudfront.ResponseHeadersFrameOptions{FrameOption: awscloudfront.HeadersFrameOption_DENY,
					Override: jsii.Bool(true)},
				ReferrerPolicy: &awscloudfront.ResponseHeadersReferrerPolicy{
					ReferrerPolicy: awscloudfront.HeadersReferrerPolicy_NO_REFERRER, Override: jsii.Bool(true),
				},
				StrictTransportSecurity: &awscloudfront.ResponseHeadersStrictTransportSecurity{
					AccessControlMaxAge: awscdk.Duration_Days(jsii.Number(365)), Override: jsii.Bool(true),
				},
			},
		})
}

func (s *stack) originOf(rest awsapigateway.RestApi, d domain) string {
	if d.set() {
		return "https://" + d.Name
	}
	host := *rest.RestApiId()
	if len(s.APIEndpoints) > 0 { // the name of a private API for the network of its endpoint
		host += "-" + s.APIEndpoints[0]
	}
	return "https://" + host + ".execute-api." + *s.Region() + "." + *s.UrlSuffix()
}

func (s *stack) fillConsole(bucket awss3.Bucket, media, inference string) error {
	known, err := s.catalog()
	if err != nil {
		return err
	}
	settings := console.Settings{
		BaseURL: media, InferenceURL: inference, DocsURL: media + "/docs",
		MaxUpload: formOfFunction, Currency: known.Currency, Models: console.Models(known),
	}
	if s.Ingest == "fargate" {
		settings.MaxUpload = int64(s.MaxUpload)
	}
	if s.Realtime {
		settings.RealtimeURL = "https://" + s.RealtimeDomain.Name + "/realtime"
	}
	// The settings become a string, in which CDK can replace placeholders with values known only after the
	// deployment.
	described, err := json.Marshal(settings)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "console-*")
	if err != nil {
		return err
	}
	// The folder is not needed later, because CDK copies it during synthesis.
	defer os.RemoveAll(folder)
	files, err := console.Files()
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := os.WriteFile(filepath.Join(folder, file.Name), file.Content, 0o644); err != nil {
			return fmt.Errorf("copy the console: %w", err)
		}
	}
	awss3deployment.NewBucketDeployment(s.Stack, jsii.String("ConsoleDeployment"), &awss3deployment.BucketDeploymentProps{
		Sources: &[]awss3deployment.ISource{
			awss3deployment.Source_Asset(jsii.String(folder), nil),
			awss3deployment.Source_Data(jsii.String(console.SettingsFile), jsii.String(string(described)), nil),
		},
		DestinationBucket: bucket,
		// Browsers revalidate the files each time, so they never mix two versions.
		CacheControl:   &[]awss3deployment.CacheControl{awss3deployment.CacheControl_NoCache()},
		RetainOnDelete: jsii.Bool(false),
		MemoryLimit:    jsii.Number(256),
		LogGroup: awslogs.NewLogGroup(s.Stack, jsii.String("ConsoleDeploymentLogs"), &awslogs.LogGroupProps{
			Retention: awslogs.RetentionDays_ONE_MONTH, RemovalPolicy: awscdk.RemovalPolicy_DESTROY,
		}),
	})
	for _, child := range *s.Stack.Node().Children() {
		if strings.HasPrefix(*child.Node().Id(), "Custom::CDKBucketDeployment") {
			const why = "The function is CDK's own, which copies the page's files when a deployment changes them."
			for _, rule := range []string{"AwsSolutions-IAM4", "AwsSolutions-IAM5", "AwsSolutions-L1"} {
				suppress(child, rule, why)
			}
		}
	}
	return nil
}

func (s *stack) catalog() (*catalog.Catalog, error) {
	if s.Catalog == "" {
		return catalog.Default(s.Family)
	}
	source, err := os.ReadFile(s.Catalog)
	if err != nil {
		return nil, fmt.Errorf("read the catalog: %w", err)
	}
	return catalog.Parse(source, s.Family)
}
