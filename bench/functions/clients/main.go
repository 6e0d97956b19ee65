// Function clients responds to API Gateway and creates three AWS clients, assembled as AWS's
// documentation shows. The start benchmark compares the service's functions with it.
package main

import (
	"context"
	"log"
	"net/http"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/awslabs/aws-lambda-go-api-proxy/httpadapter"
)

func main() {
	c, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	records, blobs, executions := dynamodb.NewFromConfig(c), s3.NewFromConfig(c), sfn.NewFromConfig(c)
	lambda.Start(httpadapter.New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, first := records.ListTables(r.Context(), nil)
		_, second := blobs.ListBuckets(r.Context(), nil)
		_, third := executions.ListStateMachines(r.Context(), nil)
		if first != nil || second != nil || third != nil {
			w.WriteHeader(http.StatusBadGateway)
		}
	})).ProxyWithContext)
}
