// Function hello does as little as a function in Go can: it is the floor of the benchmark
// of starts.
package main

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
)

func main() {
	lambda.Start(func(context.Context) (string, error) { return "hello", nil })
}
