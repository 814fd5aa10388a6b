"""Enters the services of the cloud in keystone's catalogue, with their addresses from the environment."""

import os

import openstack

SERVICES = {"placement": "placement", "image": "glance", "compute": "nova", "network": "neutron"}

cloud = openstack.connect()
for kind, name in SERVICES.items():
    service = cloud.identity.create_service(type=kind, name=name)
    for interface in ("public", "internal"):
        cloud.identity.create_endpoint(
            service_id=service.id,
            interface=interface,
            url=os.environ[f"{name.upper()}_URL"],
            region_id="RegionOne",
        )
