// Command empty deletes everything in a stage's buckets, so that its stack can be deleted. CloudFormation deletes
// only empty buckets. `make destroy` runs the command with the deployment's context as its arguments.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"cutroom/shared/adapter/s3blob"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Getenv("CONFIRM"), os.Stdin, os.Stdout); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run asks for confirmation and empties the buckets of the stage named in arguments. confirmed is
// the stage if it has already been confirmed.
func run(ctx context.Context, arguments []string, confirmed string, answers io.Reader, out io.Writer) error {
	stage := stageOf(arguments)
	if stage == "prod" {
		return errors.New("make does not destroy prod")
	}
	settings, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return fmt.Errorf("read the AWS configuration: %w", err)
	}
	caller, err := sts.NewFromConfig(settings).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return fmt.Errorf("read the AWS account: %w", err)
	}
	account := aws.ToString(caller.Account)
	stacks, err := cloudformation.NewFromConfig(settings).DescribeStacks(ctx,
		&cloudformation.DescribeStacksInput{StackName: aws.String("cutroom-" + stage)})
	var missing smithy.APIError
	switch {
	case errors.As(err, &missing) && missing.ErrorCode() == "ValidationError": // no stack, perhaps because it was deleted
	case err != nil:
		return fmt.Errorf("read the stage's stack: %w", err)
	case len(stacks.Stacks) > 0 && aws.ToBool(stacks.Stacks[0].EnableTerminationProtection):
		return fmt.Errorf("the stage %s is protected: deploy it with -c protect=false first", stage)
	}
	if confirmed != stage {
		fmt.Fprintf(out, "This deletes the stage %q in the account %s, region %s, with all its data: jobs, files, keys.\n"+
			"Type the name of the stage to continue: ", stage, account, settings.Region)
		answer, err := bufio.NewReader(answers).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read the response: %w", err)
		}
		if strings.TrimSpace(answer) != stage {
			return errors.New("not confirmed: nothing was deleted")
		}
	}
	client := s3.NewFromConfig(settings, func(o *s3.Options) { o.UsePathStyle = settings.BaseEndpoint != nil })
	for _, kind := range []string{"", s3blob.ConsoleBucket} {
		bucket := s3blob.BucketName(stage, kind, account, settings.Region)
		n, err := empty(ctx, client, bucket)
		if err != nil {
			return fmt.Errorf("empty the bucket %s: %w", bucket, err)
		}
		if n > 0 {
			fmt.Fprintf(out, "Deleted %d objects of %s.\n", n, bucket)
		}
	}
	return nil
}

func stageOf(arguments []string) string {
	stage := "dev"
	for _, argument := range arguments {
		for _, flag := range []string{"--context=", "-c=", "-c"} {
			argument = strings.TrimPrefix(argument, flag)
		}
		if value, ok := strings.CutPrefix(argument, "stage="); ok {
			stage = value
		}
	}
	return stage
}

// empty deletes a bucket's objects, with all versions, and unfinished uploads. It returns the number of versions. A
// missing bucket counts as empty.
func empty(ctx context.Context, client *s3.Client, bucket string) (int, error) {
	deleted := 0
	objects := s3.NewListObjectVersionsPaginator(client, &s3.ListObjectVersionsInput{Bucket: &bucket})
	for objects.HasMorePages() {
		page, err := objects.NextPage(ctx)
		var failure smithy.APIError
		if errors.As(err, &failure) && failure.ErrorCode() == "NoSuchBucket" {
			return 0, nil
		}
		if err != nil {
			return deleted, err
		}
		var names []types.ObjectIdentifier
		for _, object := range page.Versions {
			names = append(names, types.ObjectIdentifier{Key: object.Key, VersionId: object.VersionId})
		}
		for _, marker := range page.DeleteMarkers {
			names = append(names, types.ObjectIdentifier{Key: marker.Key, VersionId: marker.VersionId})
		}
		if len(names) == 0 {
			continue
		}
		answer, err := client.DeleteObjects(ctx, &s3.DeleteObjectsInput{
			Bucket: &bucket, Delete: &types.Delete{Objects: names, Quiet: aws.Bool(true)},
		})
		if err != nil {
			return deleted, err
		}
		if len(answer.Errors) > 0 {
			first := answer.Errors[0]
			return deleted, fmt.Errorf("cannot delete %d objects, such as %s: %s", len(answer.Errors), aws.ToString(first.Key),
				aws.ToString(first.Message))
		}
		deleted += len(names)
	}
	uploads := s3.NewListMultipartUploadsPaginator(client, &s3.ListMultipartUploadsInput{Bucket: &bucket})
	for uploads.HasMorePages() {
		page, err := uploads.NextPage(ctx)
		if err != nil {
			return deleted, err
		}
		for _, upload := range page.Uploads {
			_, err := client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{
				Bucket: &bucket, Key: upload.Key, UploadId: upload.UploadId,
			})
			if err != nil {
				return deleted, err
			}
		}
	}
	return deleted, nil
}
