package dynamo

const filesByEnd = "files-by-end"
