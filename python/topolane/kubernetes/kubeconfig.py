"""Where the API server of a cluster is and how to log in: a kubeconfig, or the service account of a pod."""

from __future__ import annotations

import base64
import binascii
import dataclasses
import json
import os
import ssl
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from topolane import texts
from topolane._engine import InputError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
LONGEST_LOGIN = 60.0
"""Seconds that a program which gives credentials may take."""


class UserCredentials:
    """The credentials of a user: what goes into the header Authorization."""

    def __init__(
        self, *, token: str = "", file: Path | None = None, command: Mapping[str, Any] | None = None
    ) -> None:
        self._token, self._file, self._command = token, file, command

    def header(self, *, renew: bool = False) -> str:
        """The value of the header; empty for none. renew: do not use the last token, which was refused."""
        if self._file is not None:
            return f"Bearer {texts.read_text(self._file, texts.SMALL).strip()}"
        if self._command is not None and (renew or not self._token):
            self._token = str(run(self._command).get("token", ""))
        return self._token if " " in self._token else f"Bearer {self._token}" if self._token else ""


@dataclasses.dataclass(frozen=True)
class ApiServerAccess:
    """An API server, and how to reach it."""

    server: str
    tls: ssl.SSLContext
    login: UserCredentials
    proxy: str | None = None


def access(path: str | None = None, context: str | None = None) -> ApiServerAccess:
    """The API server that a kubeconfig names: `path`, or else KUBECONFIG, or ~/.kube/config; or that of the pod in which this runs.

    Raises InputError if there is none or it cannot be read.
    """
    paths = [path] if path is not None else _usual_paths()
    if not paths:
        if context is None and "KUBERNETES_SERVICE_HOST" in os.environ:
            return _of_pod()
        raise InputError("there is no kubeconfig: name one with --kubeconfig or KUBECONFIG, or run in a pod")
    files = [(Path(each), _read(each)) for each in paths]
    wanted = context or next((text for _, file in files if (text := file.get("current-context"))), None)
    if not isinstance(wanted, str):
        raise InputError(f"{paths[0]}: the kubeconfig has no current-context: name one with --context")
    _, chosen = _named(files, "context", wanted)
    _check(chosen, f"{paths[0]}: context {texts.shown(wanted)}")
    return _made(files, str(chosen.get("cluster")), chosen.get("user"))


def _usual_paths() -> list[str]:
    named = [each for each in os.environ.get("KUBECONFIG", "").split(os.pathsep) if each]
    if named:
        return named
    usual = Path.home() / ".kube" / "config"
    return [str(usual)] if usual.exists() else []


def _of_pod() -> ApiServerAccess:
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    try:
        tls = ssl.create_default_context(cafile=str(SERVICE_ACCOUNT / "ca.crt"))
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"{SERVICE_ACCOUNT / 'ca.crt'}: cannot be used: {error}") from error
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return ApiServerAccess(server, tls, UserCredentials(file=SERVICE_ACCOUNT / "token"))


def _read(path: str) -> dict[str, Any]:
    import yaml

    try:
        found = yaml.safe_load(texts.read_text(path, texts.SMALL))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = "" if mark is None else f":{mark.line + 1}"
        raise InputError(f"{path}{line}: no YAML: {getattr(error, 'problem', None) or error}") from error
    if not isinstance(found, dict):
        raise InputError(f"{path}: not a kubeconfig")
    return found


def _entries(
    files: list[tuple[Path, dict[str, Any]]], kind: str
) -> Iterator[tuple[Path, str, dict[str, Any]]]:
    for path, file in files:
        for entry in file.get(f"{kind}s") or []:
            if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
                raise InputError(f"{path}: an entry of {kind}s has no name")
            yield path, entry["name"], entry.get(kind) or {}


def _named(files: list[tuple[Path, dict[str, Any]]], kind: str, name: str) -> tuple[Path, dict[str, Any]]:
    """The first entry of a name, and its file."""
    known = []
    for path, other, entry in _entries(files, kind):
        if other == name:
            return path, entry
        known.append(other)
    there = f"; there are {', '.join(known)}" if known else ""
    raise InputError(f"{files[0][0]}: there is no {kind} {texts.shown(name)}{there}")


def _check(entry: Any, where: str) -> None:
    if not isinstance(entry, dict):
        raise InputError(f"{where} is not a mapping")


def _made(files: list[tuple[Path, dict[str, Any]]], cluster_name: str, user_name: Any) -> ApiServerAccess:
    path, cluster = _named(files, "cluster", cluster_name)
    where = f"{path}: cluster {texts.shown(cluster_name)}"
    _check(cluster, where)
    server = cluster.get("server")
    if not isinstance(server, str) or not server.startswith(("https://", "http://")):
        raise InputError(f"{where}: server is http(s)://HOST:PORT, not {texts.shown(str(server))}")
    tls = _tls(cluster, where, path.parent)
    login = UserCredentials()
    if user_name:
        user_path, user = _named(files, "user", str(user_name))
        said = f"{user_path}: user {texts.shown(str(user_name))}"
        _check(user, said)
        login = _login(user, tls, said, user_path.parent)
    return ApiServerAccess(server.rstrip("/"), tls, login, cluster.get("proxy-url"))


def _tls(cluster: Mapping[str, Any], where: str, home: Path) -> ssl.SSLContext:
    try:
        data = _data(cluster, "certificate-authority", where, home)
        tls = ssl.create_default_context(cadata=None if data is None else data.decode())
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise InputError(f"{where}: certificate-authority cannot be used: {error}") from error
    if cluster.get("insecure-skip-tls-verify"):
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    return tls


def _data(entry: Mapping[str, Any], key: str, where: str, home: Path) -> bytes | None:
    """The content of a member that is a file's name or, with -data behind its name, base64."""
    text, file = entry.get(f"{key}-data"), entry.get(key)
    if text:
        try:
            return base64.b64decode(text, validate=True)
        except (binascii.Error, TypeError, ValueError) as error:
            raise InputError(f"{where}: {key}-data is not base64") from error
    return bytes(texts.read_bytes(home / str(file), texts.SMALL)) if file else None


def _login(user: Mapping[str, Any], tls: ssl.SSLContext, where: str, home: Path) -> UserCredentials:
    certificate, key = _data(user, "client-certificate", where, home), _data(user, "client-key", where, home)
    if certificate and key:
        _load(tls, certificate, key, where)
    if user.get("token"):
        return UserCredentials(token=str(user["token"]))
    if user.get("tokenFile"):
        return UserCredentials(file=home / str(user["tokenFile"]))
    if user.get("username"):
        pair = f"{user['username']}:{user.get('password', '')}".encode()
        return UserCredentials(token=f"Basic {base64.b64encode(pair).decode()}")
    if user.get("exec"):
        return _from_program({**user["exec"], "where": where}, tls, where)
    if user.get("auth-provider"):
        raise InputError(f"{where}: auth-provider is not supported: use exec, which replaced it")
    return UserCredentials()


def _from_program(command: Mapping[str, Any], tls: ssl.SSLContext, where: str) -> UserCredentials:
    said = run(command)
    if said.get("clientCertificateData") and said.get("clientKeyData"):
        _load(tls, said["clientCertificateData"].encode(), said["clientKeyData"].encode(), where)
    return UserCredentials(token=str(said.get("token", "")), command=command)


def _load(tls: ssl.SSLContext, certificate: bytes, key: bytes, where: str) -> None:
    # Python reads certificates from files alone.
    with tempfile.NamedTemporaryFile() as file:
        file.write(certificate.rstrip() + b"\n" + key)
        file.flush()
        try:
            tls.load_cert_chain(file.name)
        except (ssl.SSLError, OSError) as error:
            raise InputError(f"{where}: client-certificate or client-key cannot be used: {error}") from error


def run(command: Mapping[str, Any]) -> dict[str, Any]:
    """The status of the ExecCredential that a program of a kubeconfig prints."""
    where, program = command["where"], str(command.get("command", ""))
    version = command.get("apiVersion", "client.authentication.k8s.io/v1")
    asked = {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False}}
    environment = {**os.environ, "KUBERNETES_EXEC_INFO": json.dumps(asked)}
    environment |= {str(one.get("name")): str(one.get("value")) for one in command.get("env") or []}
    words = [program, *map(str, command.get("args") or [])]
    try:
        done = subprocess.run(words, env=environment, capture_output=True, timeout=LONGEST_LOGIN, check=True)
        status = json.loads(done.stdout)["status"]
    except OSError as error:
        raise InputError(f"{where}: {program}: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise InputError(f"{where}: {program} gave no credentials within {LONGEST_LOGIN:.0f} s") from error
    except subprocess.CalledProcessError as error:
        words = error.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise InputError(
            f"{where}: {program} ended with code {error.returncode}: {' '.join(words)}"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{where}: {program} printed no ExecCredential") from error
    if not isinstance(status, dict):
        raise InputError(f"{where}: {program} printed no ExecCredential")
    return status
