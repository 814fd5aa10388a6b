# In the dom0 of an emulated machine: joins the network of the two machines as host $1, and starts libvirt for Xen.
set -e
hostname "xen$1"
for host in 1 2; do echo "10.9.0.$host xen$host" >>/etc/hosts; done
ip address add "10.9.0.$1/24" dev eth0
ip link set eth0 up
# libvirt starts the driver for QEMU too, which wants its user.
echo "libvirt-qemu:x:64055:64055::/:/bin/false" >>/etc/passwd
echo "libvirt-qemu:x:64055:" >>/etc/group
for folder in /run/libvirt /run/lock /etc/libvirt /var/lib/libvirt /var/cache/libvirt /var/log/libvirt; do
  mkdir -p "$folder"
  mount -t tmpfs new "$folder"
done
cat >/run/libvirtd.conf <<END
unix_sock_dir = "/run/libvirt"
auth_unix_rw = "none"
auth_tcp = "none"
listen_tls = 0
listen_tcp = 1
listen_addr = "10.9.0.$1"
host_uuid = "0000000$1-1111-2222-3333-444455556666"
log_outputs = "2:file:/run/libvirtd.log"
END
libvirtd --config /run/libvirtd.conf --pid-file /run/libvirtd.pid --listen --daemon
END=$(($(date +%s) + 300))
until [ -S /run/libvirt/libvirt-sock ]; do
  [ "$(date +%s)" -lt $END ] || { cat /run/libvirtd.log; exit 1; }
  sleep 1
done
