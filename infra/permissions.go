package main

import (
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"
)

type permission struct {
	actions   []string
	resources []*string
	when      map[string]any
	// why holds the reason for a wildcard at the end of a resource.
	why string
}

func allow(role awsiam.Role, permissions ...permission) {
	for _, p := range permissions {
		props := &awsiam.PolicyStatementProps{Actions: jsii.Strings(p.actions...), Resources: &p.resources}
		if p.when != nil {
			props.Conditions = &p.when
		}
		role.AddToPolicy(awsiam.NewPolicyStatement(props))
		if p.why != "" {
			suppress(role, "AwsSolutions-IAM5", p.why)
		}
	}
}

func (s *stack) onTable(name string, actions ...string) permission {
	for i, action := range actions {
		actions[i] = "dynamodb:" + action
	}
	return permission{actions: actions, resources: []*string{s.tables[name].TableArn()}}
}

func (s *stack) onIndexes(name string) permission {
	return permission{
		actions: []string{"dynamodb:Query"}, resources: []*string{jsii.String(*s.tables[name].TableArn() + "/index/*")},
		why: "All indexes of a table contain the same records.",
	}
}

// onBlobs allows actions on blobs with a prefix such as "jobs/".
func (s *stack) onBlobs(prefix string, actions ...string) permission {
	for i, action := range actions {
		actions[i] = "s3:" + action
	}
	return permission{
		actions: actions, resources: []*string{s.bucketARN("/" + prefix + "*")},
		why: "Blobs are named by id. All blobs under the prefix are of one kind.",
	}
}

// reportMissing makes S3 return 404 instead of 403 for a missing blob.
func (s *stack) reportMissing() permission {
	return permission{actions: []string{"s3:ListBucket"}, resources: []*string{s.bucketARN("")}}
}

func (s *stack) onQueues(queues func(lane) *string, actions ...string) permission {
	for i, action := range actions {
		actions[i] = "sqs:" + action
	}
	return permission{actions: actions, resources: []*string{queues(s.lanes["video"]), queues(s.lanes["image"])}}
}

func queueARN(l lane) *string { return l.queue.QueueArn() }

// authenticate returns the permissions to authenticate clients and count their requests.
func (s *stack) authenticate() []permission {
	return []permission{s.onTable("credentials", "GetItem"), s.onTable("usage", "UpdateItem")}
}

// submitJobs returns the permissions of programs that accept and show jobs and end overdue jobs.
// They also publish a form's uploaded files once their bytes have arrived.
func (s *stack) submitJobs() []permission {
	return append(append(s.publishUploads(), s.wakeUp()...),
		// If the queue is full, GetItem on the idempotency key shows whether the job has already been accepted. The
		// other actions are for jobs' budget holds.
		s.onTable("usage", "GetItem", "Query", "DeleteItem"),
		s.onTable("jobs", "GetItem", "BatchGetItem", "Query", "PutItem", "UpdateItem", "DeleteItem"),
		permission{actions: []string{"states:StartExecution"}, resources: []*string{s.stateMachineARN()}},
		permission{
			actions: []string{"states:StopExecution"}, resources: []*string{s.arn("states", "execution:"+s.name("jobs")+":*")},
			why: "Executions are named after the jobs.",
		},
		s.onQueues(queueARN, "GetQueueAttributes"),
		s.onBlobs("jobs/", "PutObject", "GetObject", "DeleteObject", "AbortMultipartUpload"),
	)
}

func (s *stack) listJobs() []permission { return []permission{s.onIndexes("jobs"), s.readSecret()} }

func (s *stack) readSecret() permission {
	return permission{actions: []string{"secretsmanager:GetSecretValue"}, resources: []*string{s.secret.SecretArn()}}
}

// wakeUp lets programs that accept jobs start workers if no worker is running.
func (s *stack) wakeUp() []permission {
	if !s.hasWorker() {
		return nil
	}
	return []permission{{actions: []string{"lambda:InvokeFunction"}, resources: s.functionARNs("wake")}}
}

// readContent returns the permissions of programs that return job results and the bytes of files.
// The secret verifies links to shared results.
func (s *stack) readContent() []permission {
	return []permission{
		s.readSecret(),
		s.onTable("jobs", "Query", "UpdateItem"), s.onTable("files", "GetItem"),
		s.onBlobs("jobs/", "GetObject"), s.onBlobs("files/", "GetObject"), s.onBlobs("thumbnails/", "GetObject"),
		s.reportMissing(),
	}
}

// verifyFiles returns the permissions of the function that verifies results and stored files. It reads untrusted
// files, so it has no access to secrets. Workers store their signing certificates in the jobs table, and only the
// workers have the private key.
func (s *stack) verifyFiles() []permission {
	return []permission{
		s.onTable("jobs", "GetItem", "Query", "UpdateItem"), s.onTable("files", "GetItem"),
		s.onBlobs("jobs/", "GetObject"), s.onBlobs("files/", "GetObject"), s.reportMissing(),
	}
}

// keepFiles returns the permissions of programs that store and list files. The secret encrypts the cursors.
func (s *stack) keepFiles() []permission {
	return append(s.storeFiles(), s.readSecret())
}

func (s *stack) storeFiles() []permission {
	return []permission{
		s.onTable("files", "GetItem", "Query", "PutItem", "UpdateItem", "DeleteItem"),
		s.onIndexes("files"),
		s.onBlobs("files/", "PutObject", "GetObject", "DeleteObject", "AbortMultipartUpload"),
		s.onBlobs("thumbnails/", "DeleteObject"), s.reportMissing(),
	}
}

// keepKeys returns the permissions of programs that issue client tokens and manage permanent keys and their budgets.
// They write to the audit log and read it. The secret signs the tokens.
func (s *stack) keepKeys() []permission {
	return []permission{s.readSecret(), s.onTable("credentials", "PutItem", "UpdateItem", "ConditionCheckItem"),
		s.onIndexes("credentials"), s.onTable("usage", "Query", "PutItem", "DeleteItem")}
}

func (s *stack) readSessions() []permission {
	return []permission{s.onTable("sessions", "GetItem", "BatchGetItem")}
}

// meterInference returns the permissions of the inference gateway. It counts usage and requests, reads usage for
// its route and for rate limits, and takes budget allocations, which it later deletes.
func (s *stack) meterInference() []permission {
	may := []permission{s.onTable("usage", "GetItem", "Query", "DeleteItem")}
	for _, arn := range s.UpstreamSecrets {
		may = append(may,
			permission{actions: []string{"secretsmanager:GetSecretValue"}, resources: []*string{jsii.String(arn)}})
	}
	return may
}

// endJobs returns the permissions of the function that ends abandoned jobs. CDK adds Lambda's
// permissions to receive messages from the dead-letter queues.
func (s *stack) endJobs() []permission { return []permission{s.onTable("jobs", "Query", "UpdateItem")} }

// reportTasks returns the permission to report a task's result to the state machine.
func (s *stack) reportTasks() permission {
	return permission{actions: []string{"states:SendTaskSuccess", "states:SendTaskFailure"},
		resources: []*string{s.stateMachineARN()}}
}

// publishUploads returns the permissions of the function that publishes files uploaded with signed URLs.
func (s *stack) publishUploads() []permission {
	return []permission{
		// The index finds expired files, which are deleted to free capacity.
		s.onTable("files", "GetItem", "PutItem", "UpdateItem", "DeleteItem"), s.onIndexes("files"),
		s.onBlobs("files/", "GetObject", "DeleteObject"),
		s.reportMissing(),
	}
}

func (s *stack) deleteFiles() []permission {
	return []permission{
		s.onTable("files", "UpdateItem", "DeleteItem"), s.onBlobs("files/", "DeleteObject"),
		s.onBlobs("thumbnails/", "DeleteObject"),
	}
}

// setWorkers returns the permissions of the functions that set the number of workers from the queued jobs.
func (s *stack) setWorkers() []permission {
	return []permission{
		{actions: []string{"ecs:DescribeServices", "ecs:UpdateService"}, resources: []*string{s.workerServiceARN()}},
		s.onTable("jobs", "GetItem", "UpdateItem"),
		s.onQueues(queueARN, "GetQueueAttributes"),
	}
}

// protectTasks lets a task protect itself from scale-in while it is working on a job.
func (s *stack) protectTasks() permission {
	return permission{
		actions:   []string{"ecs:GetTaskProtection", "ecs:UpdateTaskProtection"},
		resources: []*string{s.arn("ecs", "task/"+s.workerCluster()+"/*")},
		why:       "ECS chooses the ids of tasks. All tasks of the cluster belong to this service.",
	}
}

// workJobs returns the permissions of the workers, which also store thumbnails of the stored files that jobs use.
func (s *stack) workJobs() []permission {
	return append(append(s.sendTraces(), s.signResults()...),
		s.onQueues(queueARN, "ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility"),
		s.onTable("jobs", "GetItem", "Query", "UpdateItem"),
		s.onTable("usage", "UpdateItem", "DeleteItem"), // for a job's cost and budget holds
		s.onBlobs("jobs/", "GetObject", "PutObject", "DeleteObject", "AbortMultipartUpload"),
		s.onBlobs("files/", "GetObject"), s.onBlobs("thumbnails/", "GetObject", "PutObject", "DeleteObject"),
		s.reportMissing(),
		s.reportTasks(),
	)
}

func (s *stack) arn(service, resource string) *string {
	return jsii.String(strings.Join([]string{"arn", *s.Partition(), service, *s.Region(), *s.Account(), resource}, ":"))
}

// functionARNs returns the ARNs of a function and of its alias. Callers use the other one for some minutes after the option
// rollout has changed.
func (s *stack) functionARNs(name string) []*string {
	return []*string{s.arn("lambda", "function:"+s.name(name)), s.arn("lambda", "function:"+s.name(name)+":"+stageName)}
}

func (s *stack) stateMachineARN() *string { return s.arn("states", "stateMachine:"+s.name("jobs")) }

func (s *stack) workerServiceARN() *string {
	return s.arn("ecs", "service/"+s.workerCluster()+"/"+s.workerService())
}
