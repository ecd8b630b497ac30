import { describe, expect, it } from 'vitest'
import { useRig } from '../support/use-started.ts'

const HTML = { headers: { accept: 'text/html' }, redirect: 'manual' as const }

describe.each([{ CONSOLE: 'off' }, { ROLE: 'worker' }])('with %j', (settings) => {
  const rig = useRig({ settings })

  it('there is no console', async () => {
    for (const path of ['/', '/console', '/console/sign-in', '/console/sign-in/x']) {
      const response = await fetch(rig.service.url + path, HTML)
      expect(response.status).toBe(404)
      expect(response.headers.get('content-type')).toBe('application/problem+json')
    }
  })
})
