rootProject.name = "tributary_flutter"
