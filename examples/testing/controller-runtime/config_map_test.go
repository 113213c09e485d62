// A suite that uses controller-runtime's envtest, on Clusterwright's API server:
//
//	export KUBEBUILDER_ASSETS=$(clusterwright envtest)
//	go test ./...
package example

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

func TestAConfigMapIsWrittenAndRead(t *testing.T) {
	environment := &envtest.Environment{}
	config, err := environment.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer environment.Stop()
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	settings := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "settings", Namespace: "default"},
		Data:       map[string]string{"colour": "green"},
	}
	if err := c.Create(context.Background(), settings); err != nil {
		t.Fatal(err)
	}
	found := &corev1.ConfigMap{}
	if err := c.Get(context.Background(), client.ObjectKeyFromObject(settings), found); err != nil {
		t.Fatal(err)
	}
	if found.Data["colour"] != "green" {
		t.Fatalf("got %v", found.Data)
	}
}
