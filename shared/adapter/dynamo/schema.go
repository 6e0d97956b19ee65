// Package dynamo keeps records in DynamoDB. Every write is one conditional call
// or one transaction, so that a write that is repeated, late or doubled changes
// nothing that it should not.
package dynamo

// Table describes a table: what the deploy makes, and the tests.
type Table struct {
	// Name is the table's name within a deployment, such as "jobs". What
	// deploys adds what tells deployments apart.
	Name string
	// PartitionKey and SortKey are attributes that hold strings; a table
	// without a SortKey has none.
	PartitionKey, SortKey string
	Indexes               []Index
	// TTL is the attribute that holds the Unix time, in seconds, from which on
	// DynamoDB deletes an item; empty for a table that keeps all.
	TTL string
	// StreamsOldImages says that the table has a stream of what its items were
	// before they changed or went.
	StreamsOldImages bool
	// StreamsNewImages says that the table has a stream of what its items have
	// become. A table has one stream at most.
	StreamsNewImages bool
}

// Index describes a global secondary index, whose keys are strings too.
type Index struct {
	Name                  string
	PartitionKey, SortKey string
	// Includes are the attributes that the index holds beside the keys; without
	// any it holds whole items.
	Includes []string
}

// TableName returns what a table of the schema is called in a deploy, by the
// deploy's stage: the command line finds it by this, without asking AWS.
func TableName(stage, name string) string { return "cutroom-" + stage + "-" + name }

// ttlAttribute is the attribute of every table whose items end by themselves.
const ttlAttribute = "ttl"

// Tables describes all tables.
func Tables() []Table {
	return []Table{
		// The request of a job has an item of its own, so that the writes of
		// its progress stay small.
		{
			Name: "jobs", PartitionKey: "id", SortKey: "part", TTL: ttlAttribute, StreamsNewImages: true,
			Indexes: []Index{
				{Name: jobsByAccount, PartitionKey: "account", SortKey: "id", Includes: []string{"status", "model"}},
			},
		},
		{
			Name: "files", PartitionKey: "account", SortKey: "id", TTL: ttlAttribute, StreamsOldImages: true,
			Indexes: []Index{{Name: filesByEnd, PartitionKey: "account", SortKey: "ends_at"}},
		},
		{
			Name: "credentials", PartitionKey: "id", TTL: ttlAttribute,
			Indexes: []Index{{Name: keysByAccount, PartitionKey: "account", SortKey: "id"}},
		},
		{Name: "sessions", PartitionKey: "id", TTL: ttlAttribute},
		{Name: "usage", PartitionKey: "id", SortKey: "part", TTL: ttlAttribute},
	}
}
