import type { ChildProcess } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import type postgres from 'postgres'

/** CPU used (ms): by a process, and by the whole Postgres server. */
export type Cpu = { own: number; postgres: number }

/** Resident memory of a process (MB), as the kernel counts it. */
export async function readRssMb(child: ChildProcess): Promise<number> {
  const status = await readFile(`/proc/${child.pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024
}

/** Runs `work`, and returns its result with the CPU that was used meanwhile. */
export async function measureCpu<T>(
  child: ChildProcess,
  sql: postgres.Sql,
  work: () => Promise<T>,
): Promise<{ result: T; cpu: Cpu }> {
  const before = await readCpu(child, sql)
  const result = await work()
  const after = await readCpu(child, sql)
  return {
    result,
    cpu: { own: after.own - before.own, postgres: after.postgres - before.postgres },
  }
}

async function readCpu(child: ChildProcess, sql: postgres.Sql): Promise<Cpu> {
  const [row] = await sql`select pg_backend_pid() as pid`
  const { parent } = await readStat(row?.pid)
  const processes = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const stats = await Promise.all(processes.map((pid) => readStat(pid)))
  const backends = stats.filter((stat) => stat.parent === parent)
  const postmaster = await readStat(parent)
  const alive = backends.reduce((total, { cpuMs }) => total + cpuMs, 0)
  return {
    own: (await readStat(child.pid ?? 0)).cpuMs,
    postgres: alive + postmaster.cpuMs + postmaster.endedChildrenMs,
  }
}

async function readStat(pid: number) {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  const fields = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)
  const ticks = (from: number) => ((fields[from] ?? 0) + (fields[from + 1] ?? 0)) * 10
  return { parent: fields[1] ?? 0, cpuMs: ticks(11), endedChildrenMs: ticks(13) }
}
