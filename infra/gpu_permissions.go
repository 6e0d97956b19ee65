package main

import "github.com/aws/jsii-runtime-go"

// weightsARN returns the ARN of the bucket with the weights, or of the objects under a path in it.
func (s *gpuStack) weightsARN(path string) *string {
	if bucket := s.GPU.Weights.Bucket; bucket != "" {
		return jsii.String("arn:" + *s.Partition() + ":s3:::" + bucket + path)
	}
	return s.bucketARN(path)
}

func (s *gpuStack) weightsURL() string {
	bucket := s.GPU.Weights.Bucket
	if bucket == "" {
		bucket = *s.bucketName()
	}
	if s.GPU.Weights.Prefix == "" {
		return "s3://" + bucket
	}
	return "s3://" + bucket + "/" + s.GPU.Weights.Prefix
}

func (s *gpuStack) readWeights() []permission {
	if !s.GPU.weightsInS3() {
		return nil
	}
	below := "/"
	if s.GPU.Weights.Prefix != "" {
		below += s.GPU.Weights.Prefix + "/"
	}
	return []permission{
		{
			actions: []string{"s3:GetObject"}, resources: []*string{s.weightsARN(below + "*")},
			why: "Weights are many files. The model map names their folders.",
		},
		{actions: []string{"s3:ListBucket"}, resources: []*string{s.weightsARN("")}},
	}
}

// drainSpot lets an instance's ECS agent report that the instance is about to be reclaimed, so that
// ECS stops its tasks in time. CDK does not give instances this permission.
func (s *gpuStack) drainSpot() permission {
	return permission{
		actions:   []string{"ecs:UpdateContainerInstancesState"},
		resources: []*string{s.arn("ecs", "container-instance/"+s.workerCluster()+"/*")},
		why:       "ECS chooses the ids of instances. All instances of the cluster belong to this service.",
	}
}
