import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pickPort } from '../support/ports.ts'
import { readRssMb } from './cpu.ts'
import { type Started, startProcess } from './processes.ts'
import { type Measure, makeFigure } from './report.ts'

/** `npm start` on a laptop: the first start makes the database, the second finds it. */
export async function measureStart(): Promise<Measure[]> {
  const folder = await mkdtemp(join(tmpdir(), 'ipn-bench-'))
  try {
    const cold = await startDemo(folder)
    const warm = await startDemo(folder)
    return [
      makeFigure('cold start of the demo (s)', 0, cold / 1000, { target: { atMost: 6 } }),
      makeFigure('warm start of the demo (s)', 0, warm / 1000, { target: { atMost: 3 } }),
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
  return makeFigure('memory of the idle service (MB)', 0, rss, { target: { atMost: 150 } })
}
