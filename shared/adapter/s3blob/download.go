package s3blob

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"cutroom/shared/domain/blob"
)

// downloadTime is how long a download URL can be used to start a download. The download may take longer.
const downloadTime = 5 * time.Minute

// SignDownload returns a URL with which a blob can be read without a key. It does not check that
// the blob exists. The signing role needs s3:GetObject.
func (g *Signer) SignDownload(ctx context.Context, name, contentType, disposition string) (string, error) {
	if err := blob.CheckName(name); err != nil {
		return "", err
	}
	presigner := s3.NewPresignClient(g.store.client, s3.WithPresignExpires(downloadTime))
	request, err := presigner.PresignGetObject(ctx, &s3.GetObjectInput{
		Bucket: &g.store.bucket, Key: g.store.key(name), ResponseContentType: &contentType,
		ResponseContentDisposition: &disposition,
	})
	if err != nil {
		return "", fmt.Errorf("s3: sign a download: %w", err)
	}
	return request.URL, nil
}
