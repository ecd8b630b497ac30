import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pickPort } from '../support/ports.ts'
import { readRssMb } from './cpu.ts'
import { type Started, startProcess } from './processes.ts'
import type { Measure } from './report.ts'

/** `npm start` on a laptop: the first start makes the database, the second finds it. */
export async function measureStart(): Promise<Measure[]> {
  const folder = await mkdtemp(join(tmpdir(), 'ipn-bench-'))
  try {
    const cold = await startDemo(folder)
    const warm = await startDemo(folder)
    return [
      {
        name: 'cold start of the demo (s)',
        size: 0,
        result: cold / 1000,
        value: '',
        baseline: '',
        target: { atMost: 6 },
      },
      {
        name: 'warm start of the demo (s)',
        size: 0,
        result: warm / 1000,
        value: '',
        baseline: '',
        target: { atMost: 3 },
      },
    ]
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function startDemo(folder: string): Promise<number> {
  const env = {
    PORT: await pickPort(),
    SANDBOX_PORT: await pickPort(),
    DATA_DIR: folder,
  }
  const { readyMs, stop } = await startProcess('src/main.ts', env, {
    isReady: (line) => line.startsWith('Stop with'),
  })
  await stop()
  return readyMs
}

/** Resident memory of a process that has done nothing yet. */
export async function measureIdle({ child }: Started): Promise<Measure> {
  const rss = await readRssMb(child)
  const name = 'memory of the idle service (MB)'
  return { name, size: 0, result: rss, value: '', baseline: '', target: { atMost: 150 } }
}
