import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findPort, readRssMb, type Started, startProcess } from './processes.ts'
import type { Measure } from './report.ts'

/** `npm start` on a laptop: the first start makes the database, the second finds it. */
export async function measureStart(): Promise<Measure[]> {
  const folder = await mkdtemp(join(tmpdir(), 'ipn-bench-'))
  try {
    const cold = await startDemo(folder)
    const warm = await startDemo(folder)
    return [
      {
        name: 'cold start of the demo',
        value: `${(cold / 1000).toFixed(1)} s`,
        baseline: '',
        target: '≤ 6 s',
        met: cold <= 6000,
      },
      {
        name: 'warm start of the demo',
        value: `${(warm / 1000).toFixed(1)} s`,
        baseline: '',
        target: '≤ 3 s',
        met: warm <= 3000,
      },
    ]
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function startDemo(folder: string): Promise<number> {
  const env = {
    PORT: String(await findPort()),
    SANDBOX_PORT: String(await findPort()),
    DATA_DIR: folder,
  }
  const { readyMs, stop } = await startProcess('src/main.ts', env, (line) =>
    line.startsWith('Stop with'),
  )
  await stop()
  return readyMs
}

export async function measureMemory(
  name: string,
  { child }: Started,
  baseline: string,
): Promise<Measure> {
  const rss = await readRssMb(child)
  return { name, value: `${rss.toFixed(0)} MB`, baseline, target: '≤ 150 MB', met: rss <= 150 }
}
