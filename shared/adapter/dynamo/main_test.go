package dynamo_test

import (
	"os"
	"testing"

	"cutroom/shared/testkit/awstest"
)

// local is the local AWS of these tests.
var local awstest.Shared

func TestMain(m *testing.M) { os.Exit(local.Main(m)) }
