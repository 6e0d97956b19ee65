package cost

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"cutroom/functions"
	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/stepfn"
	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/lambdatest"
)

// account is the account whose requests are counted.
const account = "acme"

// keyCount is how many keys the account has. Every request uses another key, so that each
// reads its key from the table, which a busy function does only once in five seconds.
const keyCount = 64

// world is a local AWS with the service's resources.
type world struct {
	t     *trial
	cloud *awstest.Cloud
	// schema holds the tables by the names that they have here.
	schema map[string]dynamo.Table
	// machine is the ARN of the state machine, bucket the bucket's name.
	machine, bucket string
	jobs            *dynamo.Jobs
	workers         *dynamo.Workers
	// built is the folder of the functions' programs and the worker's; settings
	// are their environment.
	built    string
	settings []string
	keys     []string
	used     int
	// memory is each function's memory in MB, accessLog the longest line of an API's
	// access log in bytes, as they are deployed.
	memory    map[string]int
	accessLog int
}

func newWorld(ctx context.Context, t *trial) (*world, error) {
	w := &world{t: t, schema: map[string]dynamo.Table{}, built: t.TempDir()}
	if err := lambdatest.Build(ctx, w.built, append(functions.Packages(), "cutroom/cmd/worker")...); err != nil {
		return nil, err
	}
	w.cloud = awstest.Start(t)
	tables := w.cloud.MakeTables(t)
	for _, table := range dynamo.Tables() {
		w.schema[tables[table.Name]] = table
	}
	w.bucket = w.cloud.MakeBucket(t)
	definition, err := stepfn.Definition("aws", tables["jobs"])
	if err != nil {
		return nil, err
	}
	w.machine = w.cloud.MakeStateMachine(t, definition)
	secret, err := secretsmanager.NewFromConfig(w.cloud.Config()).CreateSecret(ctx, &secretsmanager.CreateSecretInput{
		Name: aws.String("cursors"), SecretString: aws.String("the secret of a benchmark"),
	})
	if err != nil {
		return nil, err
	}
	w.settings = append(w.cloud.Environment(),
		"CUTROOM_BUCKET="+w.bucket, "CUTROOM_STATE_MACHINE="+w.machine, "CUTROOM_SECRET_ARN="+*secret.ARN,
		"CUTROOM_VIDEO_QUEUE="+w.cloud.MakeQueue(t, 10).URL, "CUTROOM_IMAGE_QUEUE="+w.cloud.MakeQueue(t, 10).URL,
		"CUTROOM_JOBS_TABLE="+tables["jobs"], "CUTROOM_FILES_TABLE="+tables["files"],
		"CUTROOM_CREDENTIALS_TABLE="+tables["credentials"],
		"CUTROOM_USAGE_TABLE="+tables["usage"], "CUTROOM_SESSIONS_TABLE="+tables["sessions"],
		"CUTROOM_CLUSTER=cutroom", "CUTROOM_WORKER_SERVICE=worker",
	)
	client := dynamo.NewClient(w.cloud.Config())
	w.jobs = dynamo.NewJobs(dynamo.NewRuns(client, tables["jobs"]), nil, nil, time.Now)
	w.workers = dynamo.NewWorkers(client, tables["jobs"], time.Now)
	keys := dynamo.NewKeys(client, tables["credentials"], tables["usage"])
	for i := range keyCount {
		secret := fmt.Sprintf("ck_cost_%08d", i)
		key, err := credential.NewKey(secret, account, credential.DefaultTier, "", time.Now())
		if err != nil {
			return nil, err
		}
		if err := keys.CreateKey(ctx, audit.Operator(key.CreatedAt), key); err != nil {
			return nil, err
		}
		w.keys = append(w.keys, secret)
	}
	return w, w.makeService(ctx)
}

// makeService creates the container service that wake starts.
func (w *world) makeService(ctx context.Context) error {
	client := ecs.NewFromConfig(w.cloud.Config())
	if _, err := client.CreateCluster(ctx, &ecs.CreateClusterInput{ClusterName: aws.String("cutroom")}); err != nil {
		return err
	}
	if _, err := client.RegisterTaskDefinition(ctx, &ecs.RegisterTaskDefinitionInput{
		Family: aws.String("worker"), ContainerDefinitions: []ecstypes.ContainerDefinition{{Name: aws.String("worker"),
			Image: aws.String("worker"), Memory: aws.Int32(512)}},
	}); err != nil {
		return err
	}
	_, err := client.CreateService(ctx, &ecs.CreateServiceInput{
		Cluster: aws.String("cutroom"), ServiceName: aws.String("worker"), TaskDefinition: aws.String("worker"),
		DesiredCount: aws.Int32(0),
	})
	return err
}

// want sets how many tasks the container service is to have.
func (w *world) want(ctx context.Context, n int32) error {
	_, err := ecs.NewFromConfig(w.cloud.Config()).UpdateService(ctx, &ecs.UpdateServiceInput{
		Cluster: aws.String("cutroom"), Service: aws.String("worker"), DesiredCount: &n,
	})
	return err
}

// key returns the next key.
func (w *world) key() string {
	w.used++
	return w.keys[w.used%len(w.keys)]
}

// start starts a function behind the tap.
func (w *world) start(ctx context.Context, name string, through *tap) (*lambdatest.Function, error) {
	function, ok := functions.Find(name)
	if !ok {
		return nil, fmt.Errorf("there is no function %s", name)
	}
	f, err := lambdatest.Start(ctx, lambdatest.Program(filepath.Join(w.built, name)),
		append(function.Environment(w.settings), "AWS_ENDPOINT_URL="+through.url)...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	w.t.Cleanup(f.Kill)
	return f, nil
}

// workerProcess is a running worker, whose log is in a file.
type workerProcess struct {
	command *exec.Cmd
	log     string
}

// work starts a worker behind the tap and waits until it runs.
func (w *world) work(ctx context.Context, through *tap) (*workerProcess, error) {
	folder := w.t.TempDir()
	p := &workerProcess{command: exec.Command(filepath.Join(w.built, "worker")), log: filepath.Join(folder, "log")}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.command.Env = append(append(os.Environ(), w.settings...), "AWS_ENDPOINT_URL="+through.url,
		"CUTROOM_ADDR=127.0.0.1:0", "CUTROOM_WORKERS=1", "CUTROOM_SCRATCH="+folder)
	p.command.Stdout, p.command.Stderr = log, log
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	w.t.Cleanup(func() { _ = p.command.Process.Kill() }) // it has usually ended
	return p, until(ctx, "a worker is there", func() (bool, error) { return w.workers.Warm(ctx, job.ImageLane) })
}

// stop ends the worker and returns how many bytes it has logged.
func (p *workerProcess) stop() (int, error) {
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	if err := p.command.Wait(); err != nil {
		return 0, fmt.Errorf("the worker ended with %w", err)
	}
	text, err := os.ReadFile(p.log)
	return logBytes(string(text)), err
}

// patience bounds every wait. A job has as long on a machine with other load.
const patience = 10 * time.Minute

// until asks until the answer is yes.
func until(ctx context.Context, what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		ok, err := done()
		if err != nil || ok {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: never", what)
		case <-again.C:
		}
	}
}
