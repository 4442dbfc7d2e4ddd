package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientgoscheme "k8s.io/apimachinery/pkg/util/runtime"
)

// manifests reads the Kubernetes manifests as the API server does that is told to be strict: an unknown or repeated field is an error.
func manifests(t *testing.T) (sets []*appsv1.StatefulSet, services []*corev1.Service) {
	t.Helper()
	scheme := runtime.NewScheme()
	clientgoscheme.Must(corev1.AddToScheme(scheme))
	clientgoscheme.Must(appsv1.AddToScheme(scheme))
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	text, err := os.ReadFile(filepath.Join("..", "kubernetes", "tandem.yaml"))
	check(t, err)
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		object, _, err := decoder.Decode(document, nil, nil)
		check(t, err)
		switch o := object.(type) {
		case *appsv1.StatefulSet:
			sets = append(sets, o)
		case *corev1.Service:
			services = append(services, o)
		default:
			t.Errorf("the test does not know %T", o)
		}
	}
	return sets, services
}

// server is the one container of the manifests.
func server(t *testing.T) (*appsv1.StatefulSet, corev1.Container) {
	t.Helper()
	sets, _ := manifests(t)
	if len(sets) != 1 || len(sets[0].Spec.Template.Spec.Containers) != 1 {
		t.Fatalf("there are %d sets", len(sets))
	}
	return sets[0], sets[0].Spec.Template.Spec.Containers[0]
}

// The manifests are valid, and their parts fit each other and the image.
func TestKubernetes(t *testing.T) {
	t.Parallel()
	set, c := server(t)
	_, services := manifests(t)
	labels := set.Spec.Template.Labels
	if *set.Spec.Replicas != 1 || !maps.Equal(set.Spec.Selector.MatchLabels, labels) || set.Spec.ServiceName != services[0].Name || !maps.Equal(services[0].Spec.Selector, labels) {
		t.Errorf("the set, its pods and its service do not fit: %+v", set.Spec)
	}
	pod := set.Spec.Template.Spec
	how := howToRun("")
	if s := pod.SecurityContext; fmt.Sprintf("%d:%d", *s.RunAsUser, *s.RunAsGroup) != how.User || !*s.RunAsNonRoot || *s.FSGroup != user {
		t.Errorf("it runs as %+v", s)
	}
	if s := c.SecurityContext; !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		t.Errorf("it may %+v", s)
	}
	port := c.Ports[0]
	if _, ok := how.ExposedPorts[fmt.Sprintf("%d/tcp", port.ContainerPort)]; !ok || services[0].Spec.Ports[0].TargetPort.StrVal != port.Name {
		t.Errorf("the port is %+v", port)
	}
	for name, probe := range map[string]*corev1.Probe{"/healthz live": c.LivenessProbe, "/readyz ready": c.ReadinessProbe, "/healthz started": c.StartupProbe} {
		path, _, _ := strings.Cut(name, " ")
		if probe == nil || probe.HTTPGet.Path != path || probe.HTTPGet.Port.StrVal != port.Name {
			t.Errorf("the probe %s is %+v", name, probe)
		}
	}
	if grace := graceOf(t, c.Args); time.Duration(*pod.TerminationGracePeriodSeconds)*time.Second < grace+20*time.Second {
		t.Errorf("the pod has %ds to end, and what runs %v", *pod.TerminationGracePeriodSeconds, grace)
	}
	mounts := map[string]string{}
	for _, m := range c.VolumeMounts {
		mounts[m.MountPath] = m.Name
	}
	if _, ok := how.Volumes["/data"]; !ok || mounts["/data"] != set.Spec.VolumeClaimTemplates[0].Name || mounts["/tmp"] != pod.Volumes[0].Name {
		t.Errorf("it mounts %v", mounts)
	}
	if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().Value() < 128<<20 || c.Resources.Limits.Memory().Cmp(*c.Resources.Requests.Memory()) <= 0 {
		t.Errorf("it asks for %+v", c.Resources)
	}
}

// graceOf is how long the server gives what runs.
func graceOf(t *testing.T, args []string) time.Duration {
	t.Helper()
	i := slices.Index(args, "--grace")
	if i < 0 {
		t.Fatalf("no --grace in %q", args)
	}
	grace, err := time.ParseDuration(args[i+1])
	check(t, err)
	return grace
}

// The compose file is valid, and fits the image.
func TestCompose(t *testing.T) {
	t.Parallel()
	o, err := cli.NewProjectOptions([]string{filepath.Join("..", "compose", "compose.yaml")}, cli.WithEnv([]string{"TANDEM_IMAGE=tandem:test"}), cli.WithName("tandem"), cli.WithInterpolation(true))
	check(t, err)
	p, err := o.LoadProject(context.WithoutCancel(t.Context()))
	check(t, err)
	s, err := p.GetService("tandem")
	check(t, err)
	how := howToRun("")
	if s.Image != "tandem:test" || s.StopSignal != how.StopSignal || !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || s.Command[0] != how.Cmd[0] {
		t.Errorf("the service is %+v", s)
	}
	if grace := graceOf(t, s.Command); time.Duration(*s.StopGracePeriod) < grace+20*time.Second {
		t.Errorf("it has %v to stop, and what runs %v", s.StopGracePeriod, grace)
	}
	if port := s.Ports[0]; port.HostIP != "127.0.0.1" || how.ExposedPorts[strconv.Itoa(int(port.Target))+"/tcp"] != struct{}{} {
		t.Errorf("the port is %+v", port)
	}
	if v := s.Volumes[0]; v.Type != types.VolumeTypeVolume || v.Target != "/data" || len(p.Volumes) != 1 {
		t.Errorf("the volume is %+v", v)
	}
	if test := s.HealthCheck.Test; test[0] != "CMD" || test[1] != how.Entrypoint[0] {
		t.Errorf("its health is checked with %q, and there is no shell", test)
	}
}
