import { Card } from '../../../platform/html/components.tsx'
import { TEXTS } from '../../texts/en.ts'

/** Why something is not offered. */
export function ObstacleCard({ obstacles }: { obstacles: readonly string[] }) {
  if (obstacles.length === 0) return null
  return (
    <Card title={TEXTS.decisions.notNow.title}>
      {obstacles.map((text) => (
        <p>{text}</p>
      ))}
    </Card>
  )
}
