package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"cutroom/shared/adapter/s3blob"
	"cutroom/shared/testkit/awstest"
)

func TestStageIsParsed(t *testing.T) {
	for arguments, want := range map[string]string{
		"": "dev", "-c stage=test": "test", "-c family=x --context stage=a": "a", "--context=stage=b": "b", "-cstage=c": "c",
		"-c stage=a -c stage=prod": "prod", "-c family=stage": "dev",
	} {
		if got := stageOf(strings.Fields(arguments)); got != want {
			t.Errorf("%q: %s, want %s", arguments, got, want)
		}
	}
}

func TestBucketsAreEmptied(t *testing.T) {
	cloud := awstest.Start(t)
	for _, variable := range cloud.Environment() {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	client := s3.NewFromConfig(cloud.Config(), func(o *s3.Options) { o.UsePathStyle = true })
	ctx := t.Context()
	make := func(bucket string, objects int) {
		t.Helper()
		_, err := client.CreateBucket(ctx, &s3.CreateBucketInput{
			Bucket: &bucket,
			CreateBucketConfiguration: &types.CreateBucketConfiguration{
				LocationConstraint: types.BucketLocationConstraint(awstest.Region),
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range objects {
			if _, err := client.PutObject(ctx, &s3.PutObjectInput{
				Bucket: &bucket, Key: aws.String(fmt.Sprintf("jobs/%d", i)), Body: strings.NewReader("x"),
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	name := func(stage, kind string) string {
		return s3blob.BucketName(stage, kind, awstest.Account, awstest.Region)
	}
	left := func(bucket string) int {
		t.Helper()
		n := 0
		pages := s3.NewListObjectsV2Paginator(client, &s3.ListObjectsV2Input{Bucket: &bucket})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				t.Fatal(err)
			}
			n += len(page.Contents)
		}
		return n
	}
	versioned := s3blob.BucketName("versioned", "", awstest.Account, awstest.Region)
	make(versioned, 0)
	if _, err := client.PutBucketVersioning(ctx, &s3.PutBucketVersioningInput{Bucket: &versioned,
		VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled}}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // two versions
		_, err := client.PutObject(ctx, &s3.PutObjectInput{Bucket: &versioned, Key: aws.String("files/1"), Body: strings.NewReader("x")})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &versioned, Key: aws.String("files/1")}); err != nil {
		t.Fatal(err)
	}
	// More objects than a listing page or a deletion request can hold.
	make(name("test", ""), 1005)
	make(name("test", s3blob.ConsoleBucket), 2)
	make(name("other", ""), 3)
	if _, err := client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
		Bucket: aws.String(name("test", "")), Key: aws.String("jobs/unfinished"),
	}); err != nil {
		t.Fatal(err)
	}
	empty := func(confirmed, answer string, arguments ...string) (string, error) {
		var out strings.Builder
		err := run(context.WithoutCancel(ctx), arguments, confirmed, strings.NewReader(answer), &out)
		return out.String(), err
	}
	for what, c := range map[string][]string{
		"no answer": {"", ""}, "a no": {"", "no\n"}, "another stage": {"other", "other\n"}, "a yes": {"", "y\n"},
	} {
		if _, err := empty(c[0], c[1], "-c", "stage=test"); err == nil || left(name("test", "")) != 1005 {
			t.Errorf("%s: %v, %d objects remain", what, err, left(name("test", "")))
		}
	}
	if _, err := empty("prod", "prod\n", "-c", "stage=prod"); err == nil {
		t.Error("prod was emptied")
	}
	said, err := empty("", "test\n", "-c", "stage=test")
	if err != nil || !strings.Contains(said, "Deleted 1005 objects") || !strings.Contains(said, awstest.Account) {
		t.Errorf("%v: %s", err, said)
	}
	for bucket, want := range map[string]int{
		name("test", ""): 0, name("test", s3blob.ConsoleBucket): 0, name("other", ""): 3,
	} {
		if n := left(bucket); n != want {
			t.Errorf("%s has %d objects, want %d", bucket, n, want)
		}
		_, err := client.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: &bucket})
		if (err == nil) != (want == 0) {
			t.Errorf("delete %s: %v", bucket, err)
		}
	}
	said, err = empty("versioned", "", "-c", "stage=versioned")
	if err != nil || !strings.Contains(said, "Deleted 3 objects") {
		t.Errorf("two versions and a deletion: %v: %s", err, said)
	}
	versions, err := client.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{Bucket: &versioned})
	if err != nil || len(versions.Versions)+len(versions.DeleteMarkers) > 0 {
		t.Errorf("versions remain: %v %+v", err, versions)
	}
	if _, err := empty("test", "", "-c", "stage=test"); err != nil {
		t.Errorf("missing buckets: %v", err)
	}
	protected := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `<DescribeStacksResponse><DescribeStacksResult><Stacks><member><StackName>cutroom-other</StackName>`+
			`<EnableTerminationProtection>true</EnableTerminationProtection></member></Stacks></DescribeStacksResult></DescribeStacksResponse>`)
	}))
	defer protected.Close()
	t.Setenv("AWS_ENDPOINT_URL_CLOUDFORMATION", protected.URL)
	if _, err := empty("other", "", "-c", "stage=other"); err == nil || left(name("other", "")) != 3 {
		t.Errorf("a protected stage: %v, %d objects remain", err, left(name("other", "")))
	}
}
