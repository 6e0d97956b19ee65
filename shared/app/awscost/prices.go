package awscost

import (
	"maps"
	"slices"
)

// Item is something that AWS charges for.
type Item string

// The items.
const (
	APIRequest        Item = "API Gateway: request of a REST API"
	FunctionRequest   Item = "Lambda: request"
	FunctionTime      Item = "Lambda: GB-second, arm64"
	ReadUnit          Item = "DynamoDB: read request unit"
	WriteUnit         Item = "DynamoDB: write request unit"
	Transition        Item = "Step Functions: state transition"
	QueueRequest      Item = "SQS: request"
	FairQueueRequest  Item = "SQS: request of a fair queue, in addition"
	BlobWrite         Item = "S3: PUT, COPY or POST request"
	BlobRead          Item = "S3: GET or HEAD request"
	SecretRead        Item = "Secrets Manager: API call"
	LogByte           Item = "CloudWatch: byte of logs taken in"
	AlarmMetric       Item = "CloudWatch: metric of an alarm, month"
	CustomMetric      Item = "CloudWatch: custom metric, month"
	Dashboard         Item = "CloudWatch: dashboard, month"
	Secret            Item = "Secrets Manager: secret, month"
	ContainerCPU      Item = "Fargate: vCPU-hour, Linux on Arm"
	ContainerMemory   Item = "Fargate: GB-hour of memory, Linux on Arm"
	ContainerDisk     Item = "Fargate: GB-hour of disk above 20 GB"
	PublicAddress     Item = "VPC: public IPv4 address, hour"
	Balancer          Item = "Elastic Load Balancing: Application Load Balancer, hour"
	BlobMonth         Item = "S3: GB-month, Standard"
	TransferOut       Item = "Data transfer to the Internet: GB"
	StreamedByteExtra Item = "Lambda: GB streamed above 6 MB of an answer"
)

// Price is what an item costs.
type Price struct {
	Item Item
	// Dollars is for Per of the item; Per is 0 if the item has no price here.
	Dollars, Per float64
	// Free is how many of them an account has free of charge in every month, without an
	// end. What is free only in the first year does not count.
	Free float64
	// Page is where AWS states the price, below https://aws.amazon.com/.
	Page string
}

// Region and AsOf say which list prices these are.
const (
	Region = "US East (N. Virginia), us-east-1"
	AsOf   = "November 2026"
)

const million = 1e6

// Prices are the list prices, on demand and in the first tier of volume. AWS's pages show
// most of them by a script: where a price could not be read, it is the one on which
// several descriptions of 2026 agree.
func Prices() []Price {
	return []Price{
		{APIRequest, 3.50, million, 0, "api-gateway/pricing/"},
		{FunctionRequest, 0.20, million, million, "lambda/pricing/"},
		{FunctionTime, 13.3334, million, 400_000, "lambda/pricing/"},
		{StreamedByteExtra, 0.008, 1, 100, "lambda/pricing/"},
		{ReadUnit, 0.125, million, 0, "dynamodb/pricing/on-demand/"},
		{WriteUnit, 0.625, million, 0, "dynamodb/pricing/on-demand/"},
		{Transition, 25, million, 4000, "step-functions/pricing/"},
		{QueueRequest, 0.40, million, million, "sqs/pricing/"},
		{FairQueueRequest, 0.10, million, 0, "sqs/pricing/"},
		{BlobWrite, 5, million, 0, "s3/pricing/"},
		{BlobRead, 0.40, million, 0, "s3/pricing/"},
		{BlobMonth, 0.023, 1, 0, "s3/pricing/"},
		{SecretRead, 5, million, 0, "secrets-manager/pricing/"},
		{Secret, 0.40, 1, 0, "secrets-manager/pricing/"},
		{LogByte, 0.50, 1e9, 5e9, "cloudwatch/pricing/"},
		{AlarmMetric, 0.10, 1, 10, "cloudwatch/pricing/"},
		{CustomMetric, 0.30, 1, 10, "cloudwatch/pricing/"},
		{Dashboard, 3, 1, 3, "cloudwatch/pricing/"},
		{ContainerCPU, 0.03238, 1, 0, "fargate/pricing/"},
		{ContainerMemory, 0.00356, 1, 0, "fargate/pricing/"},
		{ContainerDisk, 0.000111, 1, 0, "fargate/pricing/"},
		{PublicAddress, 0.005, 1, 0, "vpc/pricing/"},
		{Balancer, 0.0225, 1, 0, "elasticloadbalancing/pricing/"},
		{TransferOut, 0.09, 1, 100, "ec2/pricing/on-demand/"},
	}
}

// PriceOf returns the price of an item. A test checks that every item has one.
func PriceOf(item Item) Price {
	for _, p := range Prices() {
		if p.Item == item {
			return p
		}
	}
	// A resource without a price here: see Price.Per.
	return Price{Item: item}
}

// Quantities say how much of each item something uses.
type Quantities map[Item]float64

// Add adds n times other.
func (q Quantities) Add(other Quantities, n float64) {
	for item, amount := range other {
		q[item] += n * amount
	}
}

// items returns the items in one order, in which the sum is always the same, to the last
// bit.
func (q Quantities) items() []Item { return slices.Sorted(maps.Keys(q)) }

// Dollars returns what they cost at list price.
func (q Quantities) Dollars() float64 {
	total := 0.0
	for _, item := range q.items() {
		total += Dollars(item, q[item])
	}
	return total
}

// DollarsAboveFree returns what they cost in a month in which an account uses nothing
// else.
func (q Quantities) DollarsAboveFree() float64 {
	total := 0.0
	for _, item := range q.items() {
		total += Dollars(item, max(0, q[item]-PriceOf(item).Free))
	}
	return total
}

func Dollars(item Item, n float64) float64 {
	p := PriceOf(item)
	if p.Per == 0 {
		return 0
	}
	return n * p.Dollars / p.Per
}
