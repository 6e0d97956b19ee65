// Package ecs runs the workers as an ECS service, and runs single tasks. For the service, a role
// needs ecs:DescribeServices and ecs:UpdateService.
package ecs

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"

	"cutroom/shared/domain/fleet"
	"cutroom/shared/platform/awsclient"
)

type Service struct {
	client        *ecs.Client
	cluster, name string
}

var _ fleet.Service = (*Service)(nil)

func NewService(config aws.Config, cluster, name string) *Service {
	return &Service{cluster: cluster, name: name, client: ecs.NewFromConfig(config, func(o *ecs.Options) {
		o.Retryer = awsclient.Retryer()
		o.HTTPClient = awsclient.HTTPClient(config, 0)
	})}
}

// Tasks returns an error if the service does not exist.
func (s *Service) Tasks(ctx context.Context) (desired, running int, err error) {
	ctx, cancel := context.WithTimeout(ctx, awsclient.CallTime)
	defer cancel()
	found, err := s.client.DescribeServices(ctx,
		&ecs.DescribeServicesInput{Cluster: &s.cluster, Services: []string{s.name}})
	if err != nil {
		return 0, 0, fmt.Errorf("ecs: describe the service: %w", err)
	}
	if len(found.Services) != 1 {
		return 0, 0, fmt.Errorf("ecs: the cluster %[2]s has no service %[1]s", s.name, s.cluster)
	}
	return int(found.Services[0].DesiredCount), int(found.Services[0].RunningCount), nil
}

// SetDesired sets the number of tasks. ECS does not stop a task that protects itself ([TaskProtection]).
func (s *Service) SetDesired(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, awsclient.CallTime)
	defer cancel()
	_, err := s.client.UpdateService(ctx, &ecs.UpdateServiceInput{
		Cluster: &s.cluster, Service: &s.name, DesiredCount: aws.Int32(int32(n)),
	})
	if err != nil {
		return fmt.Errorf("ecs: set the number of tasks: %w", err)
	}
	return nil
}
