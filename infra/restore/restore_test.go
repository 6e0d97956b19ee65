package main

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/testkit/awstest"
)

const usage = "cutroom-test-usage"

type account struct {
	*testing.T
	client *dynamodb.Client
}

// start returns an account of the local AWS whose table of usage contains records with the keys.
func start(t *testing.T, keys ...string) account {
	t.Helper()
	cloud := awstest.Start(t)
	for _, variable := range cloud.Environment() {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	a := account{t, dynamo.NewClient(cloud.Config())}
	a.create(&types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewImage}, keys...)
	return a
}

func (a account) create(stream *types.StreamSpecification, keys ...string) {
	a.Helper()
	_, err := a.client.CreateTable(a.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String(usage), BillingMode: types.BillingModePayPerRequest, StreamSpecification: stream,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: "S"}, {AttributeName: aws.String("part"), AttributeType: "S"}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: "HASH"}, {AttributeName: aws.String("part"), KeyType: "RANGE"}},
	})
	if err != nil {
		a.Fatal(err)
	}
	for _, key := range keys {
		a.put(key, "old")
	}
}

// restoreFromBackups stands in for RestoreTableFromBackup, for which the local AWS needs the deleted table. As documented, the
// new table has the records, and neither stream, TTL nor tags.
func (a account) restoreFromBackups() {
	target, err := url.Parse(os.Getenv("AWS_ENDPOINT_URL"))
	if err != nil {
		a.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".RestoreTableFromBackup") {
			proxy.ServeHTTP(w, r)
			return
		}
		a.create(nil, "kept")
		_, _ = fmt.Fprintf(w, `{"TableDescription":{"TableArn":%q}}`, *a.described().TableArn)
	}))
	a.Cleanup(server.Close)
	a.Setenv("AWS_ENDPOINT_URL", server.URL)
}

func (a account) put(key, value string) {
	a.Helper()
	_, err := a.client.PutItem(a.Context(), &dynamodb.PutItemInput{TableName: aws.String(usage), Item: map[string]types.AttributeValue{
		"id": &types.AttributeValueMemberS{Value: key}, "part": &types.AttributeValueMemberS{Value: "1"},
		"value": &types.AttributeValueMemberS{Value: value}}})
	if err != nil {
		a.Fatal(err)
	}
}

func (a account) records() map[string]string {
	a.Helper()
	got, err := a.client.Scan(a.Context(), &dynamodb.ScanInput{TableName: aws.String(usage)})
	if err != nil {
		a.Fatal(err)
	}
	found := map[string]string{}
	for _, item := range got.Items {
		found[item["id"].(*types.AttributeValueMemberS).Value] = item["value"].(*types.AttributeValueMemberS).Value
	}
	return found
}

func (a account) described() *types.TableDescription {
	a.Helper()
	got, err := a.client.DescribeTable(a.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(usage)})
	if err != nil {
		a.Fatal(err)
	}
	return got.Table
}

// Lost records come back into the table that the stacks use. -overwrite also undoes changes.
func TestRecordsAreRestoredInPlace(t *testing.T) {
	for name, c := range map[string]struct {
		flags []string
		want  map[string]string
	}{
		"lost records only":   {nil, map[string]string{"kept": "old", "lost": "old", "changed": "new", "added": "new"}},
		"changed records too": {[]string{"-overwrite"}, map[string]string{"kept": "old", "lost": "old", "changed": "old", "added": "new"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := start(t, "kept", "lost", "changed")
			before := a.described()
			// The local AWS copies a table's current records, whatever the time. So the copy is made first, as by an
			// interrupted run.
			at := time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)
			if _, err := a.client.RestoreTableToPointInTime(t.Context(), &dynamodb.RestoreTableToPointInTimeInput{
				SourceTableName: aws.String(usage), TargetTableName: aws.String(usage + "-20261129T100000Z"), RestoreDateTime: &at,
			}); err != nil {
				t.Fatal(err)
			}
			if _, err := a.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String(usage), Key: map[string]types.AttributeValue{
				"id": &types.AttributeValueMemberS{Value: "lost"}, "part": &types.AttributeValueMemberS{Value: "1"}}}); err != nil {
				t.Fatal(err)
			}
			a.put("changed", "new")
			a.put("added", "new")
			var out strings.Builder
			if err := run(t.Context(), append(c.flags, "-stage", "test", "-at", "2026-11-29T11:00:00+01:00", "usage"), &out); err != nil {
				t.Fatal(err, out.String())
			}
			if got := a.records(); !maps.Equal(got, c.want) {
				t.Errorf("the records are %v, want %v\n%s", got, c.want, &out)
			}
			if after := a.described(); *after.TableId != *before.TableId || *after.LatestStreamArn != *before.LatestStreamArn {
				t.Errorf("the table was replaced: %+v", after)
			}
			if tables, err := a.client.ListTables(t.Context(), &dynamodb.ListTablesInput{}); err != nil || len(tables.TableNames) != 1 {
				t.Errorf("the tables are %v, %v", tables, err)
			}
		})
	}
}

// A deleted table comes back under its name, with the TTL, stream, tags and backups that its stack gave it.
func TestDeletedTableIsCreatedFromItsBackup(t *testing.T) {
	a := start(t, "kept")
	// AWS itself makes a backup of a table that is deleted.
	if _, err := a.client.CreateBackup(t.Context(), &dynamodb.CreateBackupInput{TableName: aws.String(usage), BackupName: aws.String(usage + "$DeletedTableBackup")}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.client.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String(usage)}); err != nil {
		t.Fatal(err)
	}
	a.restoreFromBackups()
	var out strings.Builder
	at := time.Now().Add(time.Minute).Format(time.RFC3339)
	if err := run(t.Context(), []string{"-stage", "test", "-at", at, "usage"}, &out); err != nil {
		t.Fatal(err, out.String())
	}
	if got := a.records(); got["kept"] != "old" || !strings.Contains(out.String(), "-c tags=restored=") {
		t.Errorf("the records are %v\n%s", got, &out)
	}
	table := a.described()
	ttl, err := a.client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(usage)})
	if err != nil || aws.ToString(ttl.TimeToLiveDescription.AttributeName) != "ttl" {
		t.Errorf("the TTL is %+v, %v", ttl, err)
	}
	if table.StreamSpecification == nil || table.StreamSpecification.StreamViewType != types.StreamViewTypeNewImage {
		t.Errorf("the stream is %+v", table.StreamSpecification)
	}
	backups, err := a.client.DescribeContinuousBackups(t.Context(), &dynamodb.DescribeContinuousBackupsInput{TableName: aws.String(usage)})
	if err != nil || backups.ContinuousBackupsDescription.PointInTimeRecoveryDescription.PointInTimeRecoveryStatus != types.PointInTimeRecoveryStatusEnabled {
		t.Errorf("the backups are %+v, %v", backups, err)
	}
	tags, err := a.client.ListTagsOfResource(t.Context(), &dynamodb.ListTagsOfResourceInput{ResourceArn: table.TableArn})
	if err != nil || len(tags.Tags) != 2 {
		t.Errorf("the tags are %+v, %v", tags, err)
	}
}

func TestUnknownTablesAreRejected(t *testing.T) {
	for _, arguments := range []string{"", "files", "-at 2026-11-29T10:00:00Z", "-at 2026-11-29T10:00:00Z files none", "-at yesterday files"} {
		if err := run(t.Context(), strings.Fields(arguments), &strings.Builder{}); err == nil {
			t.Errorf("%q was accepted", arguments)
		}
	}
}
