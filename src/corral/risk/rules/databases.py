"""Database clients: the statement decides."""

from __future__ import annotations

from corral.risk.levels import CAUTION, DANGEROUS, SAFE
from corral.risk.programs import sql_statements
from corral.risk.table import Base, Look, Sharp

_CLIENTS = (
    "psql mysql mariadb sqlite3 sqlite duckdb redis-cli mongo mongosh clickhouse clickhouse-client "
    "cqlsh sqlcmd usql influx"
)

TABLE = (
    Base("psql", SAFE, "lists databases", needs="-l --list", only="-l --list -h= -p= -U= -w"),
    Base(_CLIENTS, CAUTION, "runs statements in a database"),
    Base("pg_isready", SAFE, "asks whether a server is up"),
    Base(
        "pg_dump pg_dumpall mysqldump mariadb-dump mongodump createdb createuser pg_restore mongorestore "
        "mysqlimport initdb pg_ctl flyway liquibase sqitch dbmate",
        CAUTION,
        "copies or changes a database",
    ),
    Base("dropdb dropuser", DANGEROUS, "destroys data"),
    Base("mysqladmin", CAUTION, "administers a server"),
    Sharp("mysqladmin", DANGEROUS, "destroys data or stops the server", args=r"drop|shutdown|kill"),
    Sharp("pg_restore", DANGEROUS, "drops before it restores", options="-c --clean"),
    Sharp("mongorestore", DANGEROUS, "drops before it restores", options="--drop"),
    Sharp("flyway", DANGEROUS, "destroys data", args=r"clean"),
    Sharp("dbmate", DANGEROUS, "destroys data", args=r"drop"),
    Look(_CLIENTS, sql_statements),
)
