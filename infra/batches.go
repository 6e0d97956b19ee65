package main

const (
	// stepMemory, in MB, has to hold lines, responses and the parts of a result file.
	stepMemory = 1024
	// stepsAtOnce is the steps function's reserved concurrency: the parallel batches, plus one check.
	stepsAtOnce = 6
)

func (s *stack) startSteps() permission {
	return permission{actions: []string{"lambda:InvokeFunction"}, resources: s.functionARNs("steps")}
}

// keepBatches returns the permissions of the function that creates, lists and cancels batches and stores files at the
// inference address. It writes blobs because a batch has a copy of its input.
func (s *stack) keepBatches() []permission {
	return append(s.storeFiles(),
		s.onTable("usage", "GetItem", "BatchGetItem", "Query", "PutItem", "DeleteItem"),
		s.onBlobs("batches/", "PutObject", "DeleteObject"), s.startSteps(),
	)
}

// makeSteps returns the permissions of the function that processes batches. It makes requests like
// the gateway, stores responses, writes the result files, and deletes the leftovers of batches.
func (s *stack) makeSteps() []permission {
	return append(s.meterInference(),
		s.onIndexes("credentials"), // keys are looked up by id
		s.onTable("usage", "GetItem", "BatchGetItem", "PutItem", "UpdateItem"),
		s.onTable("files", "GetItem", "PutItem", "UpdateItem", "DeleteItem"),
		s.onIndexes("files"), // expired files are deleted to free space for results
		s.onBlobs("files/", "PutObject", "AbortMultipartUpload"),
		s.onBlobs("batches/", "GetObject", "PutObject", "DeleteObject", "AbortMultipartUpload"),
		s.reportMissing(), s.startSteps(),
	)
}
