// Package ecs raises container services from none. A role needs
// ecs:DescribeServices and ecs:UpdateService on the service.
package ecs

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"

	"cutroom/shared/platform/awsclient"
)

// Service is a container service whose number of tasks follows its work, from
// none.
type Service struct {
	client        *ecs.Client
	cluster, name string
}

// NewService makes a service from the names of its cluster and its own.
func NewService(config aws.Config, cluster, name string) *Service {
	return &Service{cluster: cluster, name: name, client: ecs.NewFromConfig(config, func(o *ecs.Options) {
		o.Retryer = awsclient.Retryer()
		o.HTTPClient = awsclient.HTTPClient(0)
	})}
}

// Wake sees to it that the service is to have a task, and reports whether it was
// to have none. A service that is to have tasks is left as it is, so that Wake may
// be called at any time and by many.
//
// ECS knows no condition on an update: scaling that raises the service between
// the look and the update is put back to one task, and raises it again a minute
// later.
func (s *Service) Wake(ctx context.Context) (woken bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, awsclient.CallTime)
	defer cancel()
	found, err := s.client.DescribeServices(ctx,
		&ecs.DescribeServicesInput{Cluster: &s.cluster, Services: []string{s.name}})
	if err != nil {
		return false, fmt.Errorf("ecs: look at the service: %w", err)
	}
	if len(found.Services) != 1 {
		return false, fmt.Errorf("ecs: there is no service %s in the cluster %s", s.name, s.cluster)
	}
	if found.Services[0].DesiredCount > 0 {
		return false, nil
	}
	_, err = s.client.UpdateService(ctx,
		&ecs.UpdateServiceInput{Cluster: &s.cluster, Service: &s.name, DesiredCount: aws.Int32(1)})
	if err != nil {
		return false, fmt.Errorf("ecs: raise the service: %w", err)
	}
	return true, nil
}
