package dynamo_test

import (
	"os"
	"testing"

	"cutroom/shared/testkit/awstest"
)

var local awstest.Shared

func TestMain(m *testing.M) { os.Exit(local.Main(m)) }
